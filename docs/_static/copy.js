// A button on every block of code that copies it, prompts and what is printed left out.
for (const block of document.querySelectorAll("article div.highlight")) {
  const code = block.querySelector("pre");
  if (!code) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy this code");
  const say = (word) => {
    button.textContent = word;
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  button.addEventListener("click", async () => {
    const lines = code.innerText.replace(/\n$/, "").split("\n");
    const typed = lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4));
    try {
      await navigator.clipboard.writeText((typed.length ? typed : lines).join("\n") + "\n");
      say("Copied");
    } catch {
      getSelection().selectAllChildren(code); // a page opened as a file may not use the clipboard everywhere
      say(document.execCommand("copy") ? "Copied" : "Press Ctrl-C");
    }
  });
  block.append(button);
}
