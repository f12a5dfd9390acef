"""Showing things: tables, figures, notebooks. Imported only when something is shown."""
