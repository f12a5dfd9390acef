"""`import duelay` loads its own dependencies, and none of those that are extras."""

import subprocess
import sys

EXTRAS = {
    "alembic", "click", "fastapi", "httpx", "jinja2", "joblib", "markdown", "matplotlib", "pandas",
    "pyarrow", "sqlalchemy", "uvicorn",
}  # fmt: skip


def test_import_duelay_loads_no_extra():
    code = "import sys, duelay; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "duelay" in loaded and loaded & EXTRAS == set()
