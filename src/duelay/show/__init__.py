"""Tables, figures and notebook views, which are imported only when something is shown."""
