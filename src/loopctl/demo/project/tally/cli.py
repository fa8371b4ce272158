"""The command line: ``python -m tally.cli FILE``."""

import argparse
from pathlib import Path

from tally import reader, summary


def main( argv: list[str] | None=None ) -> int:
    """Print what was spent in each category."""
    parser = argparse.ArgumentParser( prog = 'tally', description = 'Add up expenses.' )
    parser.add_argument( 'file', type = Path, help = 'a CSV file: date, category, amount' )
    parser.add_argument( '--only', help = 'one category' )
    arguments = parser.parse_args( argv )
    rows = reader.read( arguments.file )
    for category, amount in sorted( summary.by_category( rows, only = arguments.only ).items() ):
        print( summary.line( category, amount ) )
    return 0


if __name__ == '__main__':
    raise SystemExit( main() )
