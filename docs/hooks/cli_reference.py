"""A hook of mkdocs that writes the command-line reference from the commands themselves.

The line `<!-- commands -->` of a page is replaced by a section for each subcommand: its help text, usage, arguments and options.
"""

from __future__ import annotations

from typing import Any

import typer


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the placeholder of a page by the reference."""
    mark = "<!-- commands -->"
    return markdown.replace(mark, reference()) if mark in markdown else markdown


def reference() -> str:
    """Return the reference of all subcommands as Markdown."""
    from borelli.cli import app

    root: Any = typer.main.get_command(app)
    context = root.make_context("borelli", ["--help"], resilient_parsing=True)
    commands = {name: root.get_command(context, name) for name in root.list_commands(context)}
    return "\n".join(_section(name, command, context) for name, command in commands.items() if not command.hidden)


def _section(name: str, command: Any, parent: Any) -> str:
    context = command.make_context(name, ["--help"], parent=parent, resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## `borelli {name}`", "", (command.help or "").strip(), "", f"    borelli {name} {usage}", ""]
    options = [option for option in command.get_params(context) if "--help" not in option.opts]
    if options:
        lines += ["| option | meaning |", "|---|---|"]
        lines += [f"| {_names(option)} | {_meaning(option)} |" for option in options]
    return "\n".join([*lines, ""])


def _names(option: Any) -> str:
    if option.param_type_name == "argument":
        return f"`{option.metavar or option.name.upper()}`"
    names = ", ".join([*option.opts, *option.secondary_opts])
    return f"`{names}`" if option.is_flag else f"`{names} {option.metavar or option.type.name.upper()}`"


def _meaning(option: Any) -> str:
    text = str(getattr(option, "help", "") or "").replace("|", "\\|").replace("\n", " ")
    return text
