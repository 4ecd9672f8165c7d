"use strict";
// Columns sort when their heading is pressed: by value where there is one, by text elsewhere.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keyed = [...body.rows].map((row) => {
        const cell = row.cells[column], text = cell.textContent;
        return [row, "value" in cell.dataset ? Number(cell.dataset.value) : null, text];
      });
      keyed.sort(([, a, left], [, b, right]) => {
        if (!left || !right) return (left ? 0 : 1) - (right ? 0 : 1);
        const order = a !== null && b !== null ? a - b : left.localeCompare(right);
        return up ? order : -order;
      });
      body.append(...keyed.map(([row]) => row));
    });
  });
}
