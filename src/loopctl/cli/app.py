"""The command line."""

import typer

app = typer.Typer(name="loop")


@app.callback(invoke_without_command=True)
def main() -> None:
    """Run the manifest."""
