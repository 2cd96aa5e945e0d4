/** Shows every group of tabs in the language that the reader chose last, on each page and after a reload. */
const STORED_AS = 'docs-language';

/** Shows the stored language in all groups of the page. */
export function showLanguage() {
  const language = readLanguage();
  if (language === null) return;
  for (const group of document.querySelectorAll('.vp-code-group')) showTab(group, language);
}

/** Stores each choice, and shows it in the other groups, too. */
export function watchTabs() {
  document.addEventListener('change', ({ target }) => {
    const group = target.closest('.vp-code-group');
    if (group === null) return;
    storeLanguage(listLanguages(group)[listInputs(group).indexOf(target)]);
    const before = group.getBoundingClientRect().top;
    showLanguage();
    // Groups above have another height now; what the reader looks at stays in its place.
    window.scrollBy({ top: group.getBoundingClientRect().top - before, behavior: 'instant' });
  });
}

function showTab(group, language) {
  const index = listLanguages(group).indexOf(language);
  const input = listInputs(group)[index];
  if (input === undefined) return;
  input.checked = true;
  listBlocks(group).forEach((block, each) => {
    block.classList.toggle('active', each === index);
  });
}

const listInputs = (group) => [...group.querySelectorAll('.tabs input')];
const listBlocks = (group) => [...group.querySelector('.blocks').children];

/** Languages of the blocks of code, by which groups with other titles agree. */
function listLanguages(group) {
  return listBlocks(group).map((block) => /language-(\w+)/.exec(block.className)?.[1]);
}

/** A browser that stores nothing refuses the access: the choice then holds for the page. */
let chosen = null;

function readLanguage() {
  try {
    return localStorage.getItem(STORED_AS) ?? chosen;
  } catch {
    return chosen;
  }
}

function storeLanguage(language) {
  chosen = language;
  try {
    localStorage.setItem(STORED_AS, language);
  } catch {
    // It stays in this variable until the page is loaded again.
  }
}
