/**
 * Finds words that the glossary of CONTRIBUTING.md avoids, in identifiers, comments and docs.
 *
 * Run as `node tools/glossary.mjs [PATH...]`: it prints one line for each place, and exits with 1 when
 * there is any. Without a path it reads every tracked file that the rule covers.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/**
 * Rows of the glossary: what to write, and the patterns of what to avoid. `names` are matched against
 * the words of an identifier, joined by `-` (`postingId` is `posting-id`), `prose` against sentences.
 */
export const GLOSSARY = [
  {
    write: 'journal entry',
    names: /\bpostings?\b/,
    prose: /\bpostings\b|\b(?:a|the|each|one|its|every|new|same|other) posting\b/,
  },
  { write: 'entry line', names: /\blegs?\b/, prose: /\blegs?\b/ },
  {
    write: 'pending entry, to apply',
    names: /\bfold(?:s|ed|ing)?\b/,
    prose: /\bfold(?:s|ed|ing)?\b|\btak(?:e|es|en|ing) in\b/,
  },
  { write: 'late funds', names: /\blate-money\b/, prose: /\blate money\b/ },
  {
    write: 'chargeback',
    names: /\bclaw(?:ed|s|ing)?-?backs?\b/,
    prose: /\bclaw(?:ed|s|ing)?[- ]?backs?\b/,
  },
  {
    write: 'insufficient balance',
    names: /\black-of-money\b|\btoo-little\b/,
    prose: /\black of money\b/,
  },
  { write: 'asset, crypto payment', names: /\bcoins?\b/, prose: /\bcoins?\b/ },
  {
    write: 'to encrypt, re-encrypted',
    names: /\b(?:un|re)?seal(?:s|ed|er|ers|ing)?\b/,
    prose: /\b(?:un|re)?seal(?:s|ed|er|ers|ing)?\b/,
  },
  { write: 'to decrypt', names: /\bopeners?\b/, prose: /\bopeners?\b/ },
  { write: 'key ring', names: /(?<!\bkey-)\brings?\b/, prose: /(?<!\bkey )\brings?\b/ },
  {
    write: 'plain text, without TLS',
    names: /\bclear-text\b|\bin-clear\b/,
    prose: /\bin (?:the )?clear\b|\bclear[- ]text\b/,
  },
  { write: 'to authenticate', prose: /\basks? (?:who calls|nobody)\b/ },
  { write: 'not verified', prose: /\bat (?:its|their|his) word\b/ },
  {
    write: 'signature, verified',
    names: /\bmacs?\b/,
    prose: /\bmacs?\b|\bsender (?:is|was) (?:not )?known\b/,
  },
  { write: 'a valid key', prose: /\bkeys? that counts?\b/ },
  {
    write: 'to erase',
    names: /\bforg[eo]t(?:s|ten|ting)?\b/,
    prose: /\bforg[eo]t(?:s|ten|ting)?\b/,
  },
  { write: 'to redact', names: /\bblank(?:s|ed)?\b/, prose: /\bblank(?:s|ed)\b/ },
  { write: 'idempotency record', names: /\bclaim(?:s|ed|ing)?\b/, prose: /\bclaim(?:s|ed|ing)?\b/ },
  {
    write: 'transition, path',
    names: /\b(?:moves?|ways?)\b/,
    prose: /\b(?:the|a|each|every|its|one|this|same|last|next) moves?\b|\bits way\b/,
  },
  { write: 'to apply, ignored', names: /\bheed(?:s|ed|ing)?\b/, prose: /\bheed(?:s|ed|ing)?\b/ },
  { write: 'state, version, health', names: /\bstandings?\b/, prose: /\bstandings?\b/ },
  {
    write: 'stale state',
    names: /\brecord-ahead\b/,
    prose: /\b(?:is|was|be|are) ahead\b|\bmoved on\b/,
  },
  {
    write: 'to sync from the database',
    names: /\btake-over\b|\badopt(?:s|ed|ing)?\b/,
    prose: /\btak(?:e|es|en|ing) over\b|\badopt(?:s|ed|ing)?\b/,
  },
  { write: 'again, new', names: /\banew\b/, prose: /\banew\b/ },
  {
    write: 'lock, lock holder',
    names: /\bturns?\b/,
    prose: /\b(?:a|the|its|their|whose|one) turns?\b/,
  },
  { write: 'write conflict', prose: /\b(?:met|meets?|meeting) others\b/ },
  {
    write: 'to cancel (a send)',
    names: /\btak(?:e|es|en|ing)-back\b/,
    prose: /\b(?:tak(?:e|es|en|ing)|took) back\b/,
  },
  { write: 'in the background, next to', names: /\bbeside\b/, prose: /\bbeside\b/ },
  {
    write: 'workflow state, activity log',
    names: /\blife\b|\bjournal\b(?!-entr)/,
    prose: /\b(?:a|the|its|whose|one) life\b|\blives\b/,
  },
  { write: 'updates, waiting for', names: /\blevers?\b|\bwaits-for\b/, prose: /\blevers?\b/ },
  {
    write: 'attention reason',
    names: /\bmarks\b/,
    prose: /\b(?:a|the|its|no|every|each|this|that|such) marks?\b|\bmarks that\b/,
  },
  {
    write: 'remedy, to fix',
    names: /\bcures?\b|\bmend(?:s|ed|ing)?\b/,
    prose: /\bcures?\b|\bmend(?:s|ed|ing)?\b/,
  },
  {
    write: 'reported, undelivered, to notify',
    names: /\b(?:un)?told\b|\btell(?:s|ing)?\b/,
    prose: /\b(?:un)?told\b|\btell(?:s|ing)?\b/,
  },
  {
    write: 'request',
    names: /\bwish(?:es|ed)?\b|\basked\b/,
    prose: /\bwish(?:es|ed)?\b|\basked for\b/,
  },
  { write: 'params', names: /^given$/ },
  { write: 'stored', names: /^kept$|\bkept-/, prose: /\bwhat stands\b/ },
  {
    write: 'findings, results',
    names: /^found$/,
    prose: /\bwhat (?:was|is|came|comes|became|becomes|has become) (?:made )?of\b/,
  },
  { write: 'a different amount', prose: /\bother money\b/ },
  { write: 'confirmation page, form key', names: /\bask-page\b/, prose: /\bask page\b/ },
  {
    write: 'MFA session, authenticated session',
    names: /\b(?:half|whole)-session\b|\benter-(?:half|whole)\b/,
    prose: /\b(?:half|whole) session\b/,
  },
  { write: 'team member', names: /\bstaff\b|\bpeople\b|\bpersons?\b/, prose: /\bstaff\b/ },
  { write: 'the noun', names: /\bwhoever\b/, prose: /\bwhoever\b/ },
  {
    write: 'confirmed, reorged',
    names: /\bdeep\b(?!-(?:equal|strict))|\bundone\b/,
    prose: /\bdeep enough\b/,
  },
  {
    write: 'wrong asset, block reference, nonces',
    names: /\bstrays?\b|\bnonce-line\b/,
    prose: /\bstrays?\b|\bnonce line\b/,
  },
  {
    write: 'metrics, estimated, results',
    names: /\bfigures?\b|\breckon(?:s|ed|ing)?\b/,
    prose: /\bfigures?\b|\breckon(?:s|ed|ing)?\b/,
  },
  { write: 'client, endpoint', names: /\bdoors?\b/, prose: /\bdoors?\b/ },
  {
    write: 'module, directory, codebase',
    names: /\brooms?\b|\bhouses?\b/,
    prose: /\brooms?\b|\bhouses?\b/,
  },
];

/**
 * Names that others use: on the wire, of workflows' messages and activities, of commands and their JSON,
 * of stored fields, and of the database driver. They are contracts and stay.
 */
const PUBLIC_NAMES = new Set([
  'ALLOW_CLEAR_TEXT',
  'claims',
  'door',
  'found',
  'is_stray',
  'journal',
  'legs',
  'mac',
  'mac_differs',
  'payers_blanked',
  'payment_clawed_back',
  'postings',
  'releaseCryptoClaim',
  'reseal',
  'resealed',
  'seal',
  'sealed',
  'telling',
  'told',
  'undone',
  'clawed_back',
  'claw_back',
  'clawBack',
  'recordLateMoney',
  'recordMove',
  'recordPaymentMove',
  'recordRefundMove',
  'recordPayoutMove',
  'recordCryptoPaymentMove',
  'recordCryptoSettlementMove',
  'blankOldPayers',
]);

const CODE = /\.(?:ts|tsx|mjs)$/;
const COVERED =
  /^(?:(?:src|workflows|activities|worker|connectors|stack|bench|tools|docs|clients)\/|[A-Z]+\.md$|deploy\/|monitoring\/|docker-compose|Dockerfile)/;
/** The glossary itself, and what is not prose. */
const EXCEPT = /^tools\/glossary|^CHANGELOG\.md$|\.(?:json|png|svg|ico|csv|txt)$/;

const STRINGS = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;
const COMMENT = /^\s*(?:\/\*\*?|\*(?!\w)|\/\/)\s?(.*?)(?:\*\/)?$|\s\/\/ (.*)$/;
const IDENTIFIER = /[A-Za-z_$][\w$]*/g;
/** Functions are a verb and an object. */
const NAMED_OF = /\b(?:function|const) (\w+[a-z]Of)\b(?= ?[(<]| = (?:async )?[(<]| = \w+ =>)/;

/** Words of an identifier, in lower case and joined by `-`. */
function splitName(name) {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1-$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1-$2')
    .replace(/[_$]+/g, '-')
    .toLowerCase()
    .replace(/^-+|-+$/g, '');
}

/** Findings in the text of one file: `{line, word, write}`. */
export function checkText(path, text) {
  return CODE.test(path) ? checkCode(text) : checkProse(text);
}

function checkCode(text) {
  return text.split('\n').flatMap((line, index) => {
    const comment = COMMENT.exec(line);
    const sentence = comment?.[1] ?? comment?.[2] ?? '';
    const code =
      comment === null ? line : comment[1] === undefined ? line.slice(0, comment.index) : '';
    const names = code.replace(STRINGS, "''").match(IDENTIFIER) ?? [];
    const words = [...new Set(names)].flatMap((name) => checkName(name));
    const quoted = code.match(STRINGS)?.join(' ') ?? '';
    const isText = quoted.split(' ').length > 3;
    const prose = checkSentence(isText ? `${sentence} ${quoted}` : sentence);
    const of = NAMED_OF.exec(code);
    const verb = of === null ? [] : [{ word: of[1], write: 'a verb and its object' }];
    return [...words, ...prose, ...verb].map((finding) => ({ line: index + 1, ...finding }));
  });
}

function checkName(name) {
  if (PUBLIC_NAMES.has(name)) return [];
  const words = splitName(name);
  return GLOSSARY.flatMap(({ names, write }) => {
    return names?.test(words) ? [{ word: name, write }] : [];
  });
}

function checkProse(text) {
  let inCode = false;
  return text.split('\n').flatMap((line, index) => {
    if (line.startsWith('```')) inCode = !inCode;
    if (line === '<!-- glossary -->') inCode = true;
    if (line === '<!-- end -->') inCode = false;
    return inCode ? [] : checkSentence(line).map((finding) => ({ line: index + 1, ...finding }));
  });
}

function checkSentence(sentence) {
  // What stands in backticks is a name, which is checked where it is declared.
  const text = sentence.replace(/`[^`]*`/g, '`').toLowerCase();
  return GLOSSARY.flatMap(({ prose, write }) => {
    const match = prose?.exec(text);
    return match ? [{ word: match[0], write }] : [];
  });
}

/**
 * Findings that are still allowed, by file: words from before the glossary. A number may only shrink;
 * `node tools/glossary.mjs --write` lowers what has shrunk.
 */
const ALLOWED = new URL('glossary-allowed.json', import.meta.url);

/** Files with more findings than allowed, and with fewer: `{path, count, allowed}`. */
export function compareWithAllowed() {
  const allowed = JSON.parse(readFileSync(ALLOWED, 'utf8'));
  const paths = [...new Set([...coveredFiles(), ...Object.keys(allowed)])].filter(existsSync);
  return paths.flatMap((path) => {
    const count = checkText(path, readFileSync(path, 'utf8')).length;
    return count === (allowed[path] ?? 0) ? [] : [{ path, count, allowed: allowed[path] ?? 0 }];
  });
}

function lowerAllowed() {
  const allowed = JSON.parse(readFileSync(ALLOWED, 'utf8'));
  for (const { path, count } of compareWithAllowed()) {
    allowed[path] = Math.min(count, allowed[path] ?? 0);
  }
  const left = Object.entries(allowed).filter(([path, count]) => count > 0 && existsSync(path));
  const sorted = Object.fromEntries(left.sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(ALLOWED, `${JSON.stringify(sorted, null, 2)}\n`);
}

/** Tracked files that the rule covers. */
export function coveredFiles(paths = []) {
  const listed = execFileSync('git', ['ls-files', '--', ...paths], { encoding: 'utf8' });
  return listed.split('\n').filter((path) => COVERED.test(path) && !EXCEPT.test(path));
}

function printFindings(paths) {
  for (const path of coveredFiles(paths)) {
    for (const { line, word, write } of checkText(path, readFileSync(path, 'utf8'))) {
      console.log(`${path}:${line}: ${word} → ${write}`);
      process.exitCode = 1;
    }
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const args = process.argv.slice(2);
  if (args[0] === '--write') lowerAllowed();
  else printFindings(args);
}
