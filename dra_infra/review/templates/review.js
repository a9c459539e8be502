"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const changes = all("details.change");
  const store = document.getElementById("diffs");
  const MOST = 100;
  let data = null;

  // Draws the diff of one change from the data at the end of the page.
  const draw = (change) => {
    if (!("diff" in change.dataset)) return;
    data ??= JSON.parse(store.textContent);
    const pre = document.createElement("pre");
    pre.tabIndex = 0;
    pre.setAttribute("role", "region");
    pre.ariaLabel = `Diff of ${change.querySelector(".title").firstChild.textContent} ${change.querySelector(".name").textContent}`;
    for (const number of data.diffs[change.dataset.diff]) {
      const [style, text] = data.lines[number];
      const line = document.createElement("span");
      if (style) line.className = style;
      line.textContent = text;
      pre.append(line);
    }
    change.append(pre);
    delete change.dataset.diff;
  };

  // Marks what differs inside lines: of a run of removed lines and as many added ones, each pair.
  const mark = (change) => {
    const pre = change.querySelector("pre:not([data-marked])");
    if (!pre) return;
    pre.dataset.marked = "";
    const lines = [...pre.children];
    for (let start = 0; start < lines.length; ) {
      let middle = start, end;
      while (lines[middle]?.className === "del") middle += 1;
      for (end = middle; lines[end]?.className === "add"; ) end += 1;
      if (middle > start && end - middle === middle - start)
        for (let line = start; line < middle; line += 1) pair(lines[line], lines[line + middle - start]);
      start = Math.max(end, start + 1);
    }
  };
  const pair = (before, after) => {
    const [old, now] = [before.textContent, after.textContent];
    const most = Math.min(old.length, now.length);
    let head = 1, tail = 0;
    while (head < most && old[head] === now[head]) head += 1;
    while (tail < most - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
    if (!old.slice(1, head).trim()) return;
    for (const [line, text] of [[before, old], [after, now]]) {
      const differs = document.createElement("mark");
      differs.textContent = text.slice(head, text.length - tail);
      line.replaceChildren(text.slice(0, head), differs, text.slice(text.length - tail));
    }
  };
  const prepare = (change) => { draw(change); mark(change); };
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("details.change[open]")) prepare(event.target);
  }, true);
  all("details.change[open]").forEach(prepare);

  // A link to a change opens it.
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let above = target; above; above = above.parentElement?.closest("details")) {
      if (above.matches("details")) above.open = true;
    }
    if (target) target.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", follow);
  follow();

  // Picks out the claims of one workload on the map.
  all("input[name=show]").forEach((choice) => choice.addEventListener("change", () => {
    document.getElementById("fleet").dataset.show = choice.value;
  }));

  const tools = document.getElementById("tools");
  if (tools) {
    const [find, found, toggle] = ["find", "found", "toggle"].map((id) => document.getElementById(id));
    const choices = all("button[data-action]", tools);
    let texts = null;
    const shown = () => changes.filter((change) => !change.hidden);
    const filter = () => {
      texts ??= changes.map((change) => change.querySelector("summary").textContent.toLowerCase());
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const actions = choices.filter((each) => each.ariaPressed === "true").map((each) => each.dataset.action);
      let count = 0;
      changes.forEach((change, position) => {
        const fits = words.every((word) => texts[position].includes(word)) &&
          (!actions.length || actions.some((action) => change.classList.contains(action)));
        if (change.hidden === fits) change.hidden = !fits;
        count += fits;
      });
      found.textContent = `${count.toLocaleString("en")} of ${changes.length.toLocaleString("en")} shown`;
      name();
    };
    const name = () => {
      const some = shown().slice(0, MOST);
      const open = some.length > 0 && some.every((change) => change.open);
      toggle.textContent = open ? "Close all" : shown().length > MOST ? `Open the first ${MOST}` : "Open all";
      toggle.dataset.open = open ? "" : "1";
    };
    find.addEventListener("input", filter);
    find.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { find.value = ""; filter(); }
    });
    choices.forEach((choice) => choice.addEventListener("click", () => {
      choice.ariaPressed = choice.ariaPressed === "true" ? "false" : "true";
      filter();
    }));
    toggle.addEventListener("click", () => {
      const open = toggle.dataset.open === "1";
      (open ? shown().slice(0, MOST) : changes).forEach((change) => { change.open = open; });
      name();
    });
    document.addEventListener("toggle", name, true);
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.matches("input[type=search]")) return;
      event.preventDefault();
      find.focus();
    });
    tools.hidden = false;
    name();
  }

  // On paper nothing can be opened.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = changes.filter((change) => !change.open && !change.hidden).slice(0, MOST);
    opened.forEach((change) => { change.open = true; prepare(change); });
  });
  addEventListener("afterprint", () => opened.forEach((change) => { change.open = false; }));
})();
