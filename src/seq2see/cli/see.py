"""`seq2see see`: the commands that draw figures, a file for each group of them."""

import typer

from seq2see.cli import see_ideas, see_models, see_reduction

COMMANDS = (*see_models.COMMANDS, *see_reduction.COMMANDS, *see_ideas.COMMANDS)

app = typer.Typer(help="Draw what a model does, and why.", rich_markup_mode=None)
for command in COMMANDS:
    app.command(command.__name__.removeprefix("see_"))(command)
