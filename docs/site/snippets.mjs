/** Shows the files of a folder of `docs/snippets` as tabs, one for each language. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), '../snippets');

/** Tabs in their order, by the name of the file; a language is added by a row and its files. */
const LANGUAGES = {
  'curl.sh': { title: 'curl', highlight: 'sh' },
  // For what curl cannot do; a reader who chose curl sees it.
  'shell.sh': { title: 'Shell', highlight: 'sh' },
  'typescript.ts': { title: 'TypeScript', highlight: 'ts' },
  'python.py': { title: 'Python', highlight: 'python' },
  'php.php': { title: 'PHP', highlight: 'php' },
};

/** A paragraph that is nothing but a link to a folder of snippets. */
const PARAGRAPH = /^\[[^\]]+\]\(\.\.\/snippets\/([\w-]+)\/?\)$/gm;

export function expandSnippets(text) {
  return text.replace(PARAGRAPH, (_, name) => tabs(name));
}

/** @throws Error for a file whose language is unknown */
function tabs(name) {
  const files = readdirSync(join(FOLDER, name));
  const unknown = files.filter((file) => !(file in LANGUAGES));
  if (unknown.length > 0) throw new Error(`No language for ${unknown.join(', ')} of ${name}.`);
  const blocks = Object.entries(LANGUAGES)
    .filter(([file]) => files.includes(file))
    .map(([file, { title, highlight }]) => {
      const code = readFileSync(join(FOLDER, name, file), 'utf8').trim();
      return `\`\`\`${highlight} [${title}]\n${code}\n\`\`\``;
    });
  return `::: code-group\n\n${blocks.join('\n\n')}\n\n:::`;
}
