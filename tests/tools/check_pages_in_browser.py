"""Pages of `relax-opt --view`, or of any program, in a real browser without a window: Chromium as it comes with Qt.

    pip install PyQt6 PyQt6-WebEngine
    python tests/tools/check_pages_in_browser.py page.html ... [--screenshots FOLDER]

Says of each page what the console says, how many drawings have a size, whether sections open, and whether a bar of a
flame graph is as wide as the page after a click; 1 if one is not.
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("QTWEBENGINE_CHROMIUM_FLAGS", "--no-sandbox --disable-gpu")
os.environ.setdefault("QTWEBENGINE_DISABLE_SANDBOX", "1")

SECONDS = 60

LOOK = """
(() => {
  const sections = [...document.querySelectorAll("details")];
  const before = sections.filter(each => each.open).length;
  sections.forEach(each => each.querySelector("summary").click());
  const after = sections.filter(each => each.open).length;
  sections.forEach(each => { each.open = true; });
  const visible = each => { const box = each.getBoundingClientRect(); return box.width > 0 && box.height > 0; };
  const drawings = [...document.querySelectorAll("svg")];
  const boxes = [...document.querySelectorAll(".box")];
  const bars = [...document.querySelectorAll(".bar")];
  const narrow = bars.at(-1), wide = () => narrow.clientWidth > 0.9 * document.body.clientWidth;
  if (bars.length) narrow.click();
  const grown = !bars.length || wide();
  if (bars.length) bars[0].click();
  return JSON.stringify({
    bars: bars.length, grown: grown,
    sections: sections.length, opened: sections.length - before === after,
    drawings: drawings.length, visible: drawings.filter(visible).length,
    boxes: boxes.length, visibleBoxes: boxes.filter(visible).length,
    columns: [...document.querySelectorAll(".columns > div")].map(each => each.clientWidth),
    outside: [...document.querySelectorAll("script[src], link[href], img[src]")].length,
  });
})()
"""


def main() -> int:
    """Looks at each page."""
    from PyQt6.QtCore import QEventLoop, QTimer, QUrl
    from PyQt6.QtWebEngineCore import QWebEnginePage
    from PyQt6.QtWebEngineWidgets import QWebEngineView
    from PyQt6.QtWidgets import QApplication

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--screenshots", type=Path)
    args = parser.parse_args()
    application = QApplication(sys.argv[:1])
    failed = 0
    for path in args.pages:
        said: list[str] = []

        class Page(QWebEnginePage):
            def javaScriptConsoleMessage(self, level, message, line, source) -> None:
                said.append(f"{line}: {message}")  # noqa: B023

        view = QWebEngineView()
        view.setPage(Page(view))
        view.resize(1400, 1000)
        view.show()
        loop = QEventLoop()
        loaded: list[bool] = []
        view.loadFinished.connect(lambda ok: (loaded.append(ok), loop.quit()))  # noqa: B023
        QTimer.singleShot(1000 * SECONDS, loop.quit)
        view.load(QUrl.fromLocalFile(str(path.absolute())))
        loop.exec()
        found: list[str] = []
        view.page().runJavaScript(LOOK, lambda text: (found.append(text), loop.quit()))  # noqa: B023
        loop.exec()
        facts = json.loads(found[0]) if found else {}
        right = (
            loaded == [True]
            and not said
            and facts.get("opened")
            and facts["grown"]
            and facts["drawings"] == facts["visible"]
            and facts["boxes"] == facts["visibleBoxes"]
            and not facts["outside"]
        )
        failed += not right
        print(f"{path}: {'right' if right else 'wrong'} {facts} {said}")
        if args.screenshots is not None:
            QTimer.singleShot(1000, loop.quit)
            loop.exec()
            args.screenshots.mkdir(parents=True, exist_ok=True)
            view.grab().save(str(args.screenshots / f"{path.stem}.png"))
    del application
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
