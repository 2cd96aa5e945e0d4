/**
 * Finds words that the glossary of CONTRIBUTING.md avoids, in identifiers, comments and docs.
 *
 * Run as `node tools/glossary.mjs [PATH...]`: it prints one line for each place, and exits with 1 when
 * there is any. Without a path it reads every tracked file that the rule covers.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

/**
 * Rows of the glossary: what to write, and what to avoid: a pattern of an identifier's words, joined by
 * `-` (`postingId` is `posting-id`), and one of sentences, by default the same.
 */
const ROWS = [
  [
    'journal entry',
    /\bpostings?\b/,
    /\bpostings\b|\b(?:a|the|each|one|its|every|new|same|other) posting\b/,
  ],
  ['entry line', /\blegs?\b/],
  [
    'pending entry, to apply',
    /\bfold(?:s|ed|ing)?\b/,
    /\bfold(?:s|ed|ing)?\b|\btak(?:e|es|en|ing) in\b/,
  ],
  ['late funds', /\blate-money\b/, /\blate money\b/],
  ['chargeback', /\bclaw(?:ed|s|ing)?-?backs?\b/, /\bclaw(?:ed|s|ing)?[- ]?backs?\b/],
  ['insufficient balance', /\black-of-money\b|\btoo-little\b/, /\black of money\b/],
  ['asset, crypto payment', /\bcoins?\b/],
  ['to encrypt, re-encrypted', /\b(?:un|re)?seal(?:s|ed|er|ers|ing)?\b/],
  ['to decrypt', /\bopeners?\b/],
  ['key ring', /(?<!\bkey-)\brings?\b/, /(?<!\bkey )\brings?\b/],
  [
    'plain text, without TLS',
    /\bclear-text\b|\bin-clear\b/,
    /\bin (?:the )?clear\b|\bclear[- ]text\b/,
  ],
  ['to authenticate', null, /\basks? (?:who calls|nobody)\b/],
  ['not verified', null, /\bat (?:its|their|his) word\b/],
  ['signature, verified', /\bmacs?\b/, /\bmacs?\b|\bsender (?:is|was) (?:not )?known\b/],
  ['a valid key', null, /\bkeys? that counts?\b/],
  ['to erase', /\bforg[eo]t(?:s|ten|ting)?\b/],
  ['to redact', /\bblank(?:s|ed)?\b/, /\bblank(?:s|ed)\b/],
  ['idempotency record', /\bclaim(?:s|ed|ing)?\b/],
  [
    'transition, path',
    /\b(?:moves?|ways?)\b/,
    /\b(?:the|a|each|every|its|one|this|same|last|next) moves?\b|\bits way\b/,
  ],
  ['to apply, ignored', /\bheed(?:s|ed|ing)?\b/],
  ['state, version, health', /\bstandings?\b/],
  ['stale state', /\brecord-ahead\b/, /\b(?:is|was|be|are) ahead\b|\bmoved on\b/],
  [
    'to sync from the database',
    /\btake-over\b|\badopt(?:s|ed|ing)?\b/,
    /\btak(?:e|es|en|ing) over\b|\badopt(?:s|ed|ing)?\b/,
  ],
  ['again, new', /\banew\b/],
  ['lock, lock holder', /\bturns?\b/, /\b(?:a|the|its|their|whose|one) turns?\b/],
  ['write conflict', null, /\b(?:met|meets?|meeting) others\b/],
  ['to cancel (a send)', /\btak(?:e|es|en|ing)-back\b/, /\b(?:tak(?:e|es|en|ing)|took) back\b/],
  ['in the background, next to', /\bbeside\b/],
  [
    'workflow state, activity log',
    /\blife\b|\bjournal\b(?!-entr)/,
    /\b(?:a|the|its|whose|one) life\b|\blives\b/,
  ],
  ['updates, waiting for', /\blevers?\b|\bwaits-for\b/, /\blevers?\b/],
  [
    'attention reason',
    /\bmarks\b/,
    /\b(?:a|the|its|no|every|each|this|that|such) marks?\b|\bmarks that\b/,
  ],
  ['remedy, to fix', /\bcures?\b|\bmend(?:s|ed|ing)?\b/],
  ['reported, undelivered, to notify', /\b(?:un)?told\b|\btell(?:s|ing)?\b/],
  ['request', /\bwish(?:es|ed)?\b|\basked\b/, /\bwish(?:es|ed)?\b|\basked for\b/],
  ['params', /^given$/, null],
  ['stored', /^kept$|\bkept-/, /\bwhat stands\b/],
  [
    'findings, results',
    /^found$/,
    /\bwhat (?:was|is|came|comes|became|becomes|has become) (?:made )?of\b/,
  ],
  ['a different amount', null, /\bother money\b/],
  ['confirmation page, form key', /\bask-page\b/, /\bask page\b/],
  [
    'MFA session, authenticated session',
    /\b(?:half|whole)-session\b|\benter-(?:half|whole)\b/,
    /\b(?:half|whole) session\b/,
  ],
  ['team member', /\bstaff\b|\bpeople\b|\bpersons?\b/, /\bstaff\b/],
  ['the noun', /\bwhoever\b/],
  ['confirmed, reorged', /\bdeep\b(?!-(?:equal|strict))|\bundone\b/, /\bdeep enough\b/],
  [
    'wrong asset, block reference, nonces',
    /\bstrays?\b|\bnonce-line\b/,
    /\bstrays?\b|\bnonce line\b/,
  ],
  ['metrics, estimated, results', /\bfigures?\b|\breckon(?:s|ed|ing)?\b/],
  ['client, endpoint', /\bdoors?\b/],
  ['module, directory, codebase', /\brooms?\b|\bhouses?\b/],
];

export const GLOSSARY = ROWS.map(([write, names, prose = names]) => ({ write, names, prose }));

/**
 * Names that others use: on the wire, of workflows' messages and activities, of commands and their JSON,
 * and of the database driver. They are contracts and stay.
 */
const PUBLIC_NAMES = new Set([
  'ALLOW_CLEAR_TEXT',
  'checkpoints_sealed',
  'claim_left_open',
  'claim_without_resource',
  'claims',
  'door',
  'found',
  'journal',
  'legs',
  'mac',
  'mac_differs',
  'payment_clawed_back',
  'posting',
  'posting_behind_checkpoint',
  'posting_differs',
  'posting_extra',
  'posting_misnamed',
  'posting_missing',
  'posting_unbalanced',
  'posting_unknown',
  'posting_wrongly_open',
  'postings',
  'ring',
  'releaseCryptoClaim',
  'reseal',
  'resealed',
  'seal',
  'told',
  'undone',
  'clawed_back',
  'claw_back',
  'clawBack',
  'deposit_undone',
  'late_money_pending',
  'Move',
  'recordLateMoney',
  'recordMove',
  'recordPaymentMove',
  'recordRefundMove',
  'recordPayoutMove',
  'recordDisputeMove',
  'recordCryptoPaymentMove',
  'recordCryptoSettlementMove',
  'blankOldPayers',
]);

/** Labels that scripts find by their text, and what tests quote of outputs, options and other systems. */
const PUBLIC_LABELS =
  /Invite a person|I have kept them|Balances of coins|'Coin'|CLAIMS|\\nMOVES|\d+ postings in|'clawBack'|'rotate reseal|--beside|balanceOf\(address|like Mac OS X/g;

const CODE = /\.(?:ts|tsx|mjs)$/;
/** Tests of workflows still have words of earlier versions. */
const COVERED =
  /^(?:(?:src|workflows|activities|worker|connectors|stack|bench|tools|docs|clients)\/|test\/(?!workflows\/)|[A-Z]+\.md$|deploy\/|monitoring\/|docker-compose|Dockerfile)/;
/** The glossary itself, and what is not prose. */
const EXCEPT =
  /^tools\/glossary|^CHANGELOG\.md$|\/durable_payments\/types\.py$|\/LICENSE$|\.(?:json|png|svg|ico|csv|txt|xsd|go|java)$/;

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
  return text
    .replace(PUBLIC_LABELS, '')
    .split('\n')
    .flatMap((line, index) => {
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
  // Names in backticks and flags are checked where they are declared; USD Coin is a product.
  const text = sentence.replace(/`[^`]*`|--[\w-]+|USD Coin/g, '`').toLowerCase();
  return GLOSSARY.flatMap(({ prose, write }) => {
    const match = prose?.exec(text);
    return match ? [{ word: match[0], write }] : [];
  });
}

/** Tracked files that the rule covers. */
export function coveredFiles(paths = []) {
  const listed = execFileSync('git', ['ls-files', '--', ...paths], { encoding: 'utf8' });
  return listed
    .split('\n')
    .filter((path) => COVERED.test(path) && !EXCEPT.test(path) && existsSync(path));
}

/** Findings in all files, or in those of the paths: `{path, line, word, write}`. */
export function findAll(paths = []) {
  return coveredFiles(paths).flatMap((path) =>
    checkText(path, readFileSync(path, 'utf8')).map((finding) => ({ path, ...finding })),
  );
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const { path, line, word, write } of findAll(process.argv.slice(2))) {
    console.log(`${path}:${line}: ${word} → ${write}`);
    process.exitCode = 1;
  }
}
