"""`python -m tensorexpr`: see `driver.cli`."""

import sys

from .driver.cli import main

if __name__ == "__main__":
    sys.exit(main())
