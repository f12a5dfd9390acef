"""The entry point of the command ``duelay``: says what to install where the extra is missing."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from duelay.cli.main import run
    except ImportError as error:
        if error.name != "click":
            raise
        print("the command line needs click: pip install 'duelay[cli,plots]'", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
