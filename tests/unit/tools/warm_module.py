"""What `test_warm_python.py` runs as a module: it writes to the descriptor that it is given."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "w") as answer:
        answer.write(f"{__name__} of {[Path(sys.argv[0]).name]} wrote this\n")
    sys.exit(3)
