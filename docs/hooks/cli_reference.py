"""A hook of mkdocs that writes the command-line reference from the commands themselves.

The line `<!-- commands -->` of a page is replaced by a section for each subcommand: its help text, usage, arguments and options.
"""

from __future__ import annotations

from typing import Any

import click
import typer


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the placeholder of a page by the reference."""
    mark = "<!-- commands -->"
    return markdown.replace(mark, reference()) if mark in markdown else markdown


def reference() -> str:
    """Return the reference of all subcommands as Markdown."""
    from borelli.cli import app

    root = typer.main.get_command(app)
    assert isinstance(root, click.Group)
    context = click.Context(root, info_name="borelli")
    parts = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if command is not None and not command.hidden:
            parts.append(_section(name, command, context))
    return "\n".join(parts)


def _section(name: str, command: click.Command, parent: click.Context) -> str:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## `borelli {name}`", "", (command.help or "").strip(), "", f"    borelli {name} {usage}", ""]
    options = [option for option in command.get_params(context) if "--help" not in option.opts]
    if options:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| {_names(option, context)} | {_meaning(option)} |" for option in options]
    return "\n".join([*lines, ""])


def _names(option: click.Parameter, context: click.Context) -> str:
    if isinstance(option, click.Argument):
        return f"`{option.make_metavar(context)}`"
    names = ", ".join([*option.opts, *option.secondary_opts])
    flag = isinstance(option, click.Option) and (option.is_flag or option.count)
    return f"`{names}`" if flag else f"`{names} {option.make_metavar(context)}`"


def _meaning(option: click.Parameter) -> str:
    text = str(getattr(option, "help", "") or "").replace("|", "\\|").replace("\n", " ")
    return text
