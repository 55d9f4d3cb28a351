"use strict";
(() => {
  const body = document.getElementById("case-rows");
  if (!body) return;
  const rows = [...body.rows];
  const text = document.getElementById("case-text");
  const status = document.getElementById("case-status");
  const device = document.getElementById("case-device");
  const count = document.getElementById("case-count");
  const show = () => {
    const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const told = row.textContent.toLowerCase();
      const fits = (!status.value || row.dataset.status === status.value) &&
        (!device.value || row.dataset.device === device.value) && words.every((word) => told.includes(word));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = shown + " of " + rows.length + " shown";
  };
  for (const control of [text, status, device]) control.addEventListener("input", show);
  show();
})();
