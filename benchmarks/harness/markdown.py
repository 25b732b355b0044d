"""Tables in Markdown, as pages include them."""

NONE = "–"


def markdown(headings, rows):
    """A table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
