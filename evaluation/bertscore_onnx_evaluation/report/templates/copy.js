{# Works on pages of files too, where the newer clipboard is not allowed. #}
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const text = document.getElementById(button.dataset.of);
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
    button.textContent = "Copied";
  });
}
