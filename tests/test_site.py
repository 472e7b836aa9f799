"""The configuration of the site (`make site`): its pages, the entries of the API page, and links out of the pages.

The site itself needs the extra `docs`, which the tests do without.
"""

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_the_navigation_has_each_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"^ *- (\S+\.md)$", nav, re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_links_stay_inside_of_the_site() -> None:
    """A page of the site links to pages of the site; other files of the repository are named."""
    outside = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in sorted(DOCS.rglob("*.md"))
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text())
        if "://" not in target and DOCS not in (page.parent / target).resolve().parents
    ]
    assert not outside


def test_entries_of_the_api_page_are_documented() -> None:
    names = re.findall(r"^::: (\S+)$", (DOCS / "reference" / "api.md").read_text(), re.MULTILINE)
    assert names
    for name in names:
        module, _, attribute = name.rpartition(".")
        entry = getattr(import_module(module), attribute)
        assert entry.__module__ == module, f"{name} is defined in {entry.__module__}"
        assert entry.__doc__, f"{name} has no docstring"


def test_issue_templates_name_what_exists() -> None:
    templates = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert [template.stem for template in templates] == ["bug", "config", "feature", "performance"]
    for template in templates:
        for name in re.findall(r"`(docs/[\w/]+)`", template.read_text()):
            assert (ROOT / name).exists()
