"""The commands ``loop`` and ``loopctl``, and ``python -m loopctl``."""

import gc
import os
import sys


def main() -> None:
    """Read the command line and do what it says."""
    # Starting makes many objects and no garbage: looking for some at every 700th is what costs.
    gc.set_threshold(150_000, 20, 20)
    from loopctl import failpoints  # noqa: PLC0415
    from loopctl.cli.app import build  # noqa: PLC0415 - so that the worker's entry need not load it
    from loopctl.cli.faults import settled  # noqa: PLC0415
    from loopctl.cli.output import guard_streams  # noqa: PLC0415

    failpoints.arm(os.environ)
    guard_streams()
    with settled():
        build(sys.argv[1:])(prog_name="loop")


if __name__ == "__main__":
    main()
