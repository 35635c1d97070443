"""Write every table into its page."""

from tables import PAGES, ROOT, filled

for page in PAGES:
    path = ROOT / page
    path.write_text(filled(page, path.read_text(encoding="utf-8")), encoding="utf-8")
