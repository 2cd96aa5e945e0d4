const GROUPS = [
  ['First hour', /^guides\//],
  ['API reference', /^reference\//],
  ['Documentation', /^(clients\/)?[\w-]+\.md$/],
];

/** A paragraph or a list: no heading, code, table, comment or group of tabs. */
const PROSE = /^(?![#|<:]|```)/;

/** Lists the pages for language models, with the first sentence of each. @see https://llmstxt.org */
export function describePages(pages) {
  const sections = GROUPS.map(([title, pattern]) => {
    const lines = Object.entries(pages)
      .filter(([path]) => pattern.test(path) && path !== 'index.md')
      .map(([path, text]) => describe(path, text));
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  const head = '# durable-payments\n\n> Take payments, refund them and pay people out over REST.\n';
  const api = 'The whole API: [OpenAPI](/docs/openapi.json), [Postman](/docs/postman.json).\n';
  return [head, api, ...sections].join('\n');
}

function describe(path, text) {
  const title = /^# (.+)$/m.exec(text)?.[1] ?? path;
  const paragraph = text.split(/\n\n+/).find((each) => PROSE.test(each)) ?? '';
  const plain = paragraph
    .replace(/^- /, '')
    .replace(/\s+/g, ' ')
    .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1');
  const sentence = /^[^.]*\./.exec(plain)?.[0] ?? plain;
  return `- [${title}](/docs/${path.replace(/\.md$/, '')}): ${sentence}`;
}
