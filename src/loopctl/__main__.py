"""The commands ``loop`` and ``loopctl``, and ``python -m loopctl``."""


def main() -> None:
    """Read the command line and do what it says."""
    from loopctl.cli.app import app  # noqa: PLC0415 - so that the worker's entry need not load it

    app(prog_name="loop")


if __name__ == "__main__":
    main()
