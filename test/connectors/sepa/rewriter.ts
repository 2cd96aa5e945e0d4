import { mkdir, readdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from '../../../connectors/sepa/files';
import { ENCODINGS, ENVELOPES, PREFIXES } from '../../statements/forms';
import { createRandom } from '../../support/random';
import { type ZippedFile, zip } from '../../support/zip';
import { IBAN, writeStatus } from './bank-files';

/** How a bank may write what it says, by what is chosen once; the first is how mock-bank does. */
const VARIANTS = {
  /** Charges within the amount, next to it, of the entry, only as a total, or with tax. */
  entry: [
    ...['as_it_is', 'charge_included', 'charge_details', 'charge_of_entry', 'charge_apart'],
    // A reversal has its own sign, or that of what it reverses.
    ...['charge_total', 'charge_tax', 'reversed_own_sign', 'reversed_same_sign'],
  ],
  /**
   * Bookings of a file: each, a sum with its parts, without, or with them in the notification alone;
   * or a sum of each, which names the file alone.
   */
  batch: ['each', 'batch_parts', 'batch_part_charges', 'batch_sum', 'batch_split', 'batch_cut'],
  notification: ['notified', 'notified_together', 'notified_late', 'notified_never'],
  version: ['version_same', 'version_newer', 'version_oldest', 'version_between'],
  encoding: [
    ...['UTF-8', 'UTF-8 with a BOM', 'UTF-16', 'UTF-16 of the other order', 'Latin 1'],
    'Windows 1252',
  ],
  spelling: ['plain', 'prefixed', 'national'],
  container: ['alone', 'blank lines before', 'a business message', 'one_after_another', 'zip'],
  /** A statement has each of these, or not. */
  statement: ['pages', 'two_days', 'same_content', 'another_account'],
  repeat: ['same_file'],
  /** Reports on a file that the rewriter saw. */
  report: ['payees', 'instant'],
} as const satisfies Record<string, readonly string[]>;

/** How often each has to come. */
const TIMES = 20;
/** Variants that a notification does not have, too. */
const ONCE = /^(?:reversed|batch_sum)/;

interface Node {
  name: string;
  attributes: string;
  children: (Node | string)[];
}

function parse(xml: string): Node {
  const root: Node = { name: '', attributes: '', children: [] };
  const path = [root];
  const tokens = /<(\/?)([A-Za-z]\w*)([^<>]*?)(\/?)>|([^<>]+)/g;
  for (const [, end, name = '', attributes = '', empty, content] of xml.matchAll(tokens)) {
    const parent = path.at(-1) ?? root;
    const child = { name, attributes: attributes.trimEnd(), children: [] };
    if (end === '/') path.pop();
    else parent.children.push(content ?? child);
    if (content === undefined && end !== '/' && empty !== '/') path.push(child);
  }
  return root;
}

const isNode = (child: Node | string): child is Node => typeof child !== 'string';
const nodes = (xml: string) => parse(xml).children.filter(isNode);
const copy = (of: Node): Node => structuredClone(of);

function write({ name, attributes, children }: Node): string {
  const inner = children.map((child) => (isNode(child) ? write(child) : child)).join('');
  return `<${name}${attributes}>${inner}</${name}>`;
}

function all(parent: Node, path: string): Node[] {
  const step = (parents: Node[], name: string) =>
    parents.flatMap(({ children }) => children.filter(isNode).filter((c) => c.name === name));
  return path.split('/').reduce(step, [parent]);
}

function at(parent: Node, path: string): Node {
  const [found] = all(parent, path);
  if (found === undefined) throw new Error(`${parent.name} has no ${path}.`);
  return found;
}

function* walk(of: Node): Generator<Node> {
  yield of;
  for (const child of of.children.filter(isNode)) yield* walk(child);
}

const text = (parent: Node, path: string) => all(parent, path)[0]?.children.join('') ?? '';
const cents = (parent: Node) => Math.round(Number(text(parent, 'Amt')) * 100);
const euros = (minor: number) => (minor / 100).toFixed(2);
const money = (name: string, minor: number) => `<${name} Ccy="EUR">${euros(minor)}</${name}>`;

function set(parent: Node, path: string, value: string): void {
  at(parent, path).children = [value];
}

function without(parent: Node, ...names: string[]): void {
  parent.children = parent.children.filter(
    (child) => !(isNode(child) && names.includes(child.name)),
  );
}

/** Puts nodes after the last of the named ones. */
function putAfter(parent: Node, names: readonly string[], added: readonly Node[]): void {
  const last = parent.children.findLastIndex((c) => isNode(c) && names.includes(c.name));
  parent.children.splice(last + 1, 0, ...added);
}

const DETAILS = 'NtryDtls/TxDtls';
const reference = (entry: Node) => text(entry, 'AcctSvcrRef');
const isDebit = (entry: Node) => /^MB-PMT/.test(reference(entry));

const record = (fee: number, more = '') =>
  `<Chrgs><Rcrd>${money('Amt', fee)}<CdtDbtInd>DBIT</CdtDbtInd>${more}</Rcrd></Chrgs>`;
const INCLUDED = '<ChrgInclInd>true</ChrgInclInd>';

/** Takes a charge of the bank with a movement. */
function charge(entry: Node, how: string, fee: number): void {
  const amount = cents(entry);
  const moved = text(entry, 'CdtDbtInd') === 'DBIT' ? amount + fee : amount - fee;
  const tax = Math.floor(fee / 6);
  const gross = `<AmtDtls><TxAmt>${money('Amt', amount)}</TxAmt></AmtDtls>`;
  const written: Record<string, string> = {
    charge_included: record(fee, INCLUDED),
    charge_details: gross + record(fee),
    charge_of_entry: gross + record(fee),
    charge_apart: record(fee),
    charge_total: `${gross}<Chrgs>${money('TtlChrgsAndTaxAmt', fee)}</Chrgs>`,
    charge_tax: gross + record(fee - tax, `<Tax>${money('Amt', tax)}</Tax>`),
  };
  const transaction = at(entry, DETAILS);
  set(entry, 'Amt', euros(moved));
  if (how !== 'charge_apart') set(transaction, 'Amt', euros(moved));
  const parent = how === 'charge_of_entry' ? entry : transaction;
  putAfter(parent, ['CdtDbtInd', 'BkTxCd'], nodes(written[how] ?? ''));
}

/** Books transfers of a file as one sum. @param hasParts whether each is named */
function book(entries: readonly [Node, ...Node[]], fee: number, hasParts: boolean): Node {
  const [first] = entries;
  const file = text(first, `${DETAILS}/Refs/PmtInfId`);
  const sum = entries.reduce((total, entry) => total + cents(entry) + fee, 0);
  const parts = entries.map((entry) => {
    const part = copy(at(entry, DETAILS));
    putAfter(at(part, 'Refs'), ['MsgId'], nodes(`<AcctSvcrRef>${reference(entry)}</AcctSvcrRef>`));
    if (fee > 0) putAfter(part, ['CdtDbtInd'], nodes(record(fee, INCLUDED)));
    return part;
  });
  const head = `<PmtInfId>${file}</PmtInfId><NbOfTxs>${entries.length}</NbOfTxs>`;
  const booked = copy(first);
  set(booked, 'Amt', euros(sum));
  set(booked, 'AcctSvcrRef', `BK-${entries.length > 1 ? file.slice(0, 20) : reference(first)}`);
  const [details] = nodes(`<NtryDtls><Btch>${head}${money('TtlAmt', sum)}</Btch></NtryDtls>`);
  details?.children.push(...(hasParts ? parts : []));
  without(booked, 'NtryDtls');
  if (details !== undefined) booked.children.push(details);
  return booked;
}

/** Takes a debit back, and books it again. */
function reverse(entry: Node, how: string): Node[] {
  const [back, again] = [copy(entry), copy(entry)];
  const side = how === 'reversed_own_sign' ? 'CRDT' : 'DBIT';
  for (const each of [back, at(back, DETAILS)]) set(each, 'CdtDbtInd', side);
  putAfter(back, ['CdtDbtInd'], nodes('<RvslInd>true</RvslInd>'));
  set(back, 'AcctSvcrRef', `${reference(entry)}-R`);
  set(again, 'AcctSvcrRef', `${reference(entry)}-B`);
  return [entry, back, again];
}

/** Splits a statement into two elements. */
function paginate(account: Node): Node[] {
  const [entries, balances] = [all(account, 'Ntry'), all(account, 'Bal')];
  const half = Math.ceil(entries.length / 2);
  return [entries.slice(0, half), entries.slice(half)].map((part, index) => {
    const page = copy(account);
    without(page, 'Ntry', 'Bal');
    putAfter(page, ['Acct'], balances.slice(index, index + 1));
    const place = `<PgNb>${index + 1}</PgNb><LastPgInd>${index === 1}</LastPgInd>`;
    putAfter(page, ['Id'], nodes(`<StmtPgntn>${place}</StmtPgntn>`));
    page.children.push(...part);
    return page;
  });
}

/** Answers a file before mock-bank does: all names match, or all is paid at once. */
function writeReport(file: Node, how: string): Node {
  const [group, status] = how === 'payees' ? ['<GrpSts>RCVC</GrpSts>', 'RCVC'] : ['', 'ACCC'];
  const id = text(file, 'CstmrCdtTrfInitn/GrpHdr/MsgId');
  const results = all(file, 'CstmrCdtTrfInitn/PmtInf/CdtTrfTxInf/PmtId').map((payment) => {
    const end = `<OrgnlEndToEndId>${text(payment, 'EndToEndId')}</OrgnlEndToEndId>`;
    return `<TxInfAndSts>${end}<TxSts>${status}</TxSts></TxInfAndSts>`;
  });
  const message = `V-${id}`;
  return at(parse(writeStatus(id, group, { message, batch: results.join('') })), 'Document');
}

const VERSIONS: Readonly<Record<string, { newest: number; between: number[]; oldest?: number }>> = {
  camt: { newest: 14, between: [4, 5, 6, 7], oldest: 2 },
  pain: { newest: 15, between: [4, 5, 6, 7, 8, 9], oldest: 3 },
  pacs: { newest: 13, between: [4, 5, 6, 7, 8, 14] },
};

/** Writes what `.08` and later have otherwise. */
function age(document: Node, { isOldest }: { isOldest: boolean }): void {
  for (const each of walk(document)) {
    const [party] = all(each, 'Pty');
    if (party !== undefined) each.children = party.children;
    if (each.name === 'Ntry') set(each, 'Sts', text(each, 'Sts/Cd'));
    if (!isOldest) continue;
    if (each.name === 'BICFI') each.name = 'BIC';
    if (each.name !== 'TxDtls') continue;
    const amount = cents(each);
    without(each, 'Amt', 'CdtDbtInd');
    putAfter(each, ['Refs'], nodes(`<AmtDtls><TxAmt>${money('Amt', amount)}</TxAmt></AmtDtls>`));
  }
}

/** Writes the bank’s valid answers otherwise, with the same sums and references. */
export function createRewriter(seed: number) {
  const random = createRandom(seed);
  const planned = new Map<string, number>();
  const written = new Map<string, number>();
  /** Chooses a variant that came the least. */
  const choose = (of: keyof typeof VARIANTS, may = (_: string) => true): string => {
    const names = VARIANTS[of].filter((name) => may(name));
    const get = (name: string) => planned.get(name) ?? 0;
    const least = Math.min(...names.map(get));
    const chosen = random.pick(names.filter((name) => get(name) === least));
    planned.set(chosen, least + (ONCE.test(chosen) ? 1 : 2));
    return chosen;
  };
  const note = (name: string) => {
    written.set(name, (written.get(name) ?? 0) + 1);
    return name;
  };
  const isRare = (name: string) => (written.get(name) ?? 0) < TIMES;
  /** Choices for files and entries, with the charge: each message says the same. */
  const bookings = new Map<string, { how: string; fee: number }>();
  const plan = (id: string, choice: () => string) => {
    const made = bookings.get(id) ?? { how: choice(), fee: random.integer(6, 90) };
    bookings.set(id, made);
    return made;
  };
  const seen = new Set<string>();
  let charged = 0;
  let number = 0;
  let late: Node[] = [];
  let together: Node | undefined;
  let held: Node | undefined;

  /** Books the transfers of a file, of which several are one group. */
  const rewriteGroup = (id: string, group: readonly Node[], isStatement: boolean): Node[] => {
    const [first, ...more] = group;
    const isSingle = group.length < 2 && !bookings.has(id);
    if (first === undefined || !isDebit(first) || isSingle) return [...group];
    const { how, fee } = plan(id, () => choose('batch'));
    if (how === 'batch_sum' && !isStatement) return [];
    if (note(how) === 'each') return [...group];
    if (how === 'batch_cut') return group.map((entry) => book([entry], 0, false));
    const hasParts = how !== 'batch_sum' && !(how === 'batch_split' && isStatement);
    const own = how === 'batch_part_charges' ? fee : 0;
    if (isStatement) charged += own * group.length;
    return [book([first, ...more], own, hasParts)];
  };

  const rewriteEntries = (account: Node, isStatement: boolean): void => {
    const groups = new Map<string, Node[]>();
    for (const entry of all(account, 'Ntry')) {
      const file = `${text(entry, `${DETAILS}/Refs/PmtInfId`)} ${text(entry, 'BookgDt/Dt')}`;
      const id = isDebit(entry) ? file : reference(entry);
      groups.set(id, [...(groups.get(id) ?? []), entry]);
    }
    let style: string | undefined;
    const booked = [...groups].flatMap(([id, group]) => rewriteGroup(id, group, isStatement));
    const rewritten = booked.flatMap((entry) => {
      if (reference(entry).startsWith('BK-')) return [entry];
      const may = (name: string) => !name.startsWith('reversed') || isDebit(entry);
      const { how, fee } = plan(reference(entry), () => choose('entry', may));
      if (how.startsWith('reversed')) {
        // One statement has one style.
        style ??= how;
        return isStatement ? reverse(entry, note(style)) : [entry];
      }
      if (note(how) === 'as_it_is') return [entry];
      if (isStatement) charged += fee;
      charge(entry, how, fee);
      return [entry];
    });
    without(account, 'TxsSummry', 'Ntry');
    account.children.push(...rewritten);
  };

  const rewriteNotification = (document: Node, account: Node): Node[] => {
    rewriteEntries(account, false);
    if (all(account, 'Ntry').length === 0) return [];
    const hasParts = all(account, `Ntry/NtryDtls/Btch`).length > 0;
    const how = note(choose('notification', (name) => name !== 'notified_never' || !hasParts));
    if (how === 'notified_late') late.push(document);
    if (how === 'notified') return [document];
    if (how !== 'notified_together') return [];
    const other = together;
    together = other === undefined ? document : undefined;
    if (other === undefined) return [];
    at(other, 'BkToCstmrDbtCdtNtfctn').children.push(account);
    return [other];
  };

  const rewriteStatement = (document: Node, account: Node): Node[] => {
    const opening = charged;
    rewriteEntries(account, true);
    for (const [index, balance] of all(account, 'Bal').entries()) {
      const signed = text(balance, 'CdtDbtInd') === 'DBIT' ? -cents(balance) : cents(balance);
      const left = signed - (index === 0 ? opening : charged);
      set(balance, 'Amt', euros(Math.abs(left)));
      set(balance, 'CdtDbtInd', left < 0 ? 'DBIT' : 'CRDT');
    }
    const has = (name: string) => random.chance(isRare(name) ? 0.9 : 0.3) && note(name) === name;
    const message = at(document, 'BkToCstmrStmt');
    const other = copy(account);
    if (has('pages')) {
      without(message, 'Stmt');
      message.children.push(...paginate(account));
    }
    if (has('another_account')) {
      without(other, 'Ntry');
      for (const balance of all(other, 'Bal')) set(balance, 'Amt', '0.00');
      set(other, 'Acct/Id/IBAN', 'DE02120300000000202051');
      message.children.push(other);
    }
    const before = held;
    held = undefined;
    if (before !== undefined) message.children.push(...all(before, 'BkToCstmrStmt/Stmt'));
    else if (has('two_days')) {
      held = document;
      return [];
    }
    if (before !== undefined) note('two_days');
    if (!has('same_content')) return [document];
    const again = copy(document);
    set(again, 'BkToCstmrStmt/GrpHdr/MsgId', `AGAIN-${text(message, 'GrpHdr/MsgId')}`);
    return [document, again];
  };

  const rewrite = (document: Node): Node[] => {
    const [account] = ['BkToCstmrStmt/Stmt', 'BkToCstmrDbtCdtNtfctn/Ntfctn'].flatMap((path) =>
      all(document, path),
    );
    if (account === undefined) return [document];
    // The bank has other customers.
    if (text(account, 'Acct/Id/IBAN') !== IBAN) return [];
    return (account.name === 'Stmt' ? rewriteStatement : rewriteNotification)(document, account);
  };

  /** Writes a document in a version and a spelling. */
  const spell = (document: Node): string => {
    const [, kind = '', present = ''] =
      /(\w{4}[.]\d{3}[.]001)[.](\d\d)"/.exec(document.attributes) ?? [];
    const { newest, between, oldest } = VERSIONS[kind.slice(0, 4)] ?? { newest: 0, between: [] };
    const isNew = [...walk(document)].some(({ name }) => ['Chrgs', 'StmtPgntn'].includes(name));
    const isReport = text(document, 'CstmrPmtStsRpt/GrpHdr/MsgId').startsWith('V-');
    const how = note(
      choose('version', (name) => {
        if (name === 'version_oldest') return oldest !== undefined && !isNew && !isReport;
        return !(isReport && name === 'version_between');
      }),
    );
    const versions: Record<string, () => number> = {
      version_newer: () => random.integer(Number(present) + 1, newest),
      version_oldest: () => oldest ?? 0,
      version_between: () => random.pick(between),
    };
    const version = versions[how]?.() ?? Number(present);
    const aged = copy(document);
    if (version < 8) age(aged, { isOldest: version === oldest });
    const spelling = note(choose('spelling'));
    const message = `${kind}.${String(version).padStart(2, '0')}`;
    const national = `http://www.six-interbank-clearing.com/de/${message}.ch.02.xsd`;
    const space = spelling === 'national' ? national : `urn:iso:std:iso:20022:tech:xsd:${message}`;
    aged.attributes = ` xmlns="${space}"`;
    // Nobody reads the names of payers, which each encoding writes otherwise.
    const body = write(aged).replaceAll('Quackenbush', 'Müßig');
    const xml = `<?xml version="1.0" encoding="UTF-8"?>\n${body}`;
    return spelling === 'prefixed' ? (PREFIXES['own']?.(xml) ?? xml) : xml;
  };

  const put = async (to: string, documents: readonly Node[]): Promise<void> => {
    const name = (ending: string) => {
      number += 1;
      return `${random.integer(100, 999)}-${number}.${ending}`;
    };
    const [zipped, chained]: [ZippedFile[], Buffer[]] = [[], []];
    for (const document of documents) {
      const container = note(choose('container'));
      const encoding = note(container === 'one_after_another' ? 'UTF-8' : choose('encoding'));
      const xml = spell(document);
      const content = ENCODINGS[encoding]?.(ENVELOPES[container]?.(xml) ?? xml);
      if (content === undefined) throw new Error(encoding);
      if (container === 'one_after_another') chained.push(content);
      else if (container === 'zip') zipped.push({ name: name('xml'), content });
      else await writeWhole(to, name('xml'), content);
      if (container !== 'alone' || random.chance(0.4)) continue;
      await writeWhole(to, name('xml'), content);
      note('same_file');
    }
    if (chained.length > 0) await writeWhole(to, name('xml'), Buffer.concat(chained));
    if (zipped.length > 0) await writeWhole(to, name('zip'), zip(zipped));
  };

  return {
    /** Charges of the rewriter alone, in cents. */
    charged: () => charged,
    /** Variants that came less often than each has to. */
    listRare: () => Object.values(VARIANTS).flat().filter(isRare),
    /** Rewrites what the bank has written by now. @param drop folder of the files to it */
    relay: async (from: string, to: string, drop: string): Promise<void> => {
      const read = async (path: string) => at(parse(await readFile(path, 'utf8')), 'Document');
      const documents: Node[] = [];
      for (const name of await readdir(drop, { recursive: true })) {
        if (!/pain[.]001\S*xml$/.test(name) || seen.has(name)) continue;
        seen.add(name);
        const file = await read(join(drop, name));
        const isInstant = [...walk(file)].some((each) => each.name === 'LclInstrm');
        documents.push(writeReport(file, note(isInstant ? 'instant' : 'payees')));
      }
      await mkdir(join(from, 'relayed'), { recursive: true });
      const names = (await readdir(from)).filter((name) => name.endsWith('.xml'));
      const answers = await Promise.all(names.map((name) => read(join(from, name))));
      const order = (each: Node) => Number(text(each, 'BkToCstmrStmt/Stmt/ElctrncSeqNb'));
      const waiting = late;
      late = [];
      // Statements come after the notifications of their day, one day after another.
      answers.sort((a, b) => order(a) - order(b));
      for (const answer of answers) documents.push(...rewrite(answer));
      (answers.some(order) ? documents : late).push(...waiting);
      for (const name of names) await rename(join(from, name), join(from, 'relayed', name));
      await put(to, documents);
    },
    /** Writes what was held back. */
    release: async (to: string): Promise<void> => {
      const all = [...late, together, held];
      await put(
        to,
        all.filter((each) => each !== undefined),
      );
      [late, together, held] = [[], undefined, undefined];
    },
  };
}
