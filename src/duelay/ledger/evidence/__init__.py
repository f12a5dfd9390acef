"""Evidence that one arm beats another: e-processes, and the rule that declares a winner."""
