"""``python3 -m egocnn``: the same as the ``egocnn`` command."""

import sys

from egocnn.cli import main

sys.exit(main())
