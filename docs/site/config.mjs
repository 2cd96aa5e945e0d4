/** Settings of VitePress, which builds a copy of the Markdown in `dist/site-source`. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';

const reference = JSON.parse(readFileSync(new URL('./reference.json', import.meta.url), 'utf8'));
const page = ([text, link]) => ({ text, link });

const FIRST_HOUR = [
  ['Start', '/guides/start'],
  ['First payment', '/guides/first-payment'],
  ['Webhooks', '/guides/webhooks'],
  ['Refund', '/guides/refund'],
  ['Payout', '/guides/payout'],
  ['Test every state', '/guides/test-every-state'],
  ['Go live', '/guides/go-live'],
].map(page);

const MERCHANTS = [
  ['The API', '/api'],
  ['Webhooks', '/webhooks'],
  ['Disputes', '/disputes'],
  ['Clients', '/clients'],
  ['TypeScript client', '/clients/typescript'],
  ['Python client', '/clients/python'],
  ['The dashboard', '/dashboard'],
  ['Decisions', '/decisions'],
].map(page);

const OPERATORS = [
  ['Overview', '/overview'],
  ['Operations', '/operations'],
  ['On call', '/operators'],
  ['Alerts', '/alerts'],
  ['The ledger', '/ledger'],
  ['Bank statements', '/statements'],
  ['Bank connectors', '/connectors'],
  ['Ethereum connector', '/evm'],
  ['SEPA files', '/sepa'],
  ['Stripe', '/stripe'],
  ['Security', '/security'],
  ['OWASP ASVS', '/asvs'],
  ['Report a vulnerability', '/security-policy'],
  ['Benchmark', '/benchmark'],
  ['Scale', '/scale'],
  ['Contributing', '/contributing'],
  ['Changes', '/changelog'],
].map(page);

/** The forge's anchors, which the links of the Markdown name. */
function slugify(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

/** Screen readers say what the tabs of a group choose. */
function nameTabs({ renderer }) {
  const { 'container_code-group_open': open } = renderer.rules;
  renderer.rules['container_code-group_open'] = (...params) =>
    open(...params).replace('class="tabs"', '$& role="radiogroup" aria-label="Language"');
}

/** Colors of code, by the class that has them. */
const colors = new Map();

/** Elements get a class, since the policy of the site allows no style in an element. */
const classifyColors = {
  span(node) {
    const { style } = node.properties;
    if (style === undefined) return;
    const name = `code-${createHash('sha256').update(style).digest('hex').slice(0, 8)}`;
    colors.set(name, style);
    delete node.properties.style;
    this.addClassToHast(node, name);
  },
};

function writeColors({ outDir }) {
  const rules = [...colors].sort().map(([name, style]) => `.${name} { ${style} }\n`);
  writeFileSync(join(outDir, 'code.css'), rules.join(''));
}

/** The theme sets this height when its menu opens; until then nothing reads it. */
const MENU_HEIGHT = ' style="--vp-vh:0px;"';

export default defineConfig({
  title: 'durable-payments',
  description: 'Take payments, refund them and pay people out.',
  base: '/docs/',
  cleanUrls: true,
  lang: 'en-US',
  head: [
    ['link', { rel: 'icon', href: 'data:,' }],
    ['link', { rel: 'stylesheet', href: '/docs/code.css' }],
  ],
  // In place of the default, a style in the element.
  contentProps: { class: 'content' },
  transformHtml: (html) => html.replaceAll(MENU_HEIGHT, ''),
  buildEnd: writeColors,
  // The guides name the addresses of the stack on this machine.
  ignoreDeadLinks: [/^https?:\/\/localhost/],
  markdown: {
    ...{ html: false, linkify: false, anchor: { slugify }, toc: { slugify } },
    // The default's colors are too pale on the background of code.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config: nameTabs,
    codeTransformers: [classifyColors],
  },
  vite: { logLevel: 'warn', build: { chunkSizeWarningLimit: 4_000 } },
  themeConfig: {
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    nav: [
      { text: 'First hour', link: '/guides/start' },
      { text: 'API reference', link: '/reference/payments' },
      { text: 'Postman', link: '/docs/postman.json', target: '_self' },
    ],
    sidebar: [
      { text: 'First hour', items: FIRST_HOUR },
      { text: 'Merchants', items: MERCHANTS },
      { text: 'API reference', items: reference },
      { text: 'Operators', items: OPERATORS },
    ],
  },
});
