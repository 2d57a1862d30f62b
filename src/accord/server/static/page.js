// What no page needs, and some are nicer with: buttons that copy or print, and numbers beside sliders.
"use strict";
document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const text = document.getElementById(copy.dataset.copy).textContent;
    navigator.clipboard.writeText(text).then(() => { copy.textContent = "Copied"; }, () => { copy.hidden = true; });
  }
  if (event.target.closest("[data-print]")) window.print();
});
document.addEventListener("input", (event) => {
  const shown = event.target.dataset && event.target.dataset.shown;
  if (shown) document.getElementById(shown).textContent = `${event.target.value} %`;
});
function show() {
  const all = navigator.clipboard ? "[data-copy], [data-print]" : "[data-print]";
  document.querySelectorAll(all).forEach((button) => { button.hidden = false; });
}
show();
document.addEventListener("htmx:afterSwap", show);
