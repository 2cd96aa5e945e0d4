import { setImmediate } from 'node:timers/promises';
import { SaxesParser, type SaxesTagNS } from 'saxes';
import { findMentions, InvalidStatement } from '../domain/banks/statement';
import { findCreditorReference } from '../domain/payment/creditor-reference';
import { createDecoder, type Decoder, readDeclared } from './encoding';
import { type BankFile, findKind, isXml } from './intake';
import { getRule, isOdd, REQUIRED } from './rules';

interface MessageKind {
  versions: readonly [first: number, last: number];
  /** Only child of the document. */
  container: string;
  /** Elements that are handed over one by one. */
  parts: readonly string[];
}

export interface MessageFamily {
  kinds: Readonly<Record<string, MessageKind>>;
  expected: string;
}

const [BkToCstmrStmt, BkToCstmrNtfctn] = ['BkToCstmrStmt', 'BkToCstmrDbtCdtNtfctn'];
/** An entry may have very many transactions. */
const ENTRY = ['Ntry', 'TxDtls'];
export const STATEMENT_MESSAGES: MessageFamily = {
  kinds: {
    'camt.053': { versions: [2, 14], container: BkToCstmrStmt, parts: ['Stmt', ...ENTRY] },
    'camt.054': { versions: [2, 14], container: BkToCstmrNtfctn, parts: ['Ntfctn', ...ENTRY] },
  },
  expected: 'statements are camt.053 and camt.054 of versions 02 to 14, or CSV',
};

/** Messages of banks about our files, which may come in one file with statements. */
export const ANSWER_MESSAGES: MessageFamily['kinds'] = {
  'pain.002': { versions: [3, 15], container: 'CstmrPmtStsRpt', parts: [] },
  'pacs.004': { versions: [2, 14], container: 'PmtRtr', parts: ['TxInf'] },
};

/** Messages that are taken for others. */
const ADVICE: Readonly<Record<string, string>> = {
  'camt.052':
    ', an intraday report, whose bookings are not final. Order the statement of the day at the ' +
    'bank instead: camt.053, by EBICS C53',
  'pain.001': ', an order to a bank',
};

const DEPTH_MAX = 100;
const ATTRIBUTES_MAX = 100;
/** Characters of a name, a value or a text. */
const TOKEN_MAX = 10 * 1024 * 1024;
const TEXT_MAX = 10_000;
/** Elements that are in memory at once: an entry with its parts, or a head. */
const ELEMENTS_MAX = 300_000;
/** Elements that take the memory of a reduced one. */
const INSTEAD_SIZE = 2;

export interface Element {
  name: string;
  text: string;
  currency: string | undefined;
  children: readonly Element[];
  /** Why what is read of it may not be believed. */
  fault: string | undefined;
}

export interface Part {
  /** For example `camt.053.001.08`. */
  message: string;
  element: Element;
  /** Element around it, with all that came before, without other parts. */
  parent: Element | undefined;
}

export interface PartReader {
  /** @returns what its parent has instead, if anything */
  take(part: Part): Element | undefined;
  /** Notes what is odd in the part before, and not read; without personal data. */
  note(notice: string): void;
  /** Names of own transfers, which free texts may have. */
  names?: readonly string[];
}

/**
 * Reads the messages of a file of XML: one, several one after another, or in an envelope. Parts come
 * as they end: nothing may be believed before all of the file is read. It loads nothing, and refuses
 * a document type.
 * @throws InvalidStatement
 */
export async function readMessages(
  { head, chunks }: BankFile,
  family: MessageFamily,
  reader: PartReader,
): Promise<void> {
  const kind = findKind(head);
  if (kind !== undefined) {
    const message = `The file is ${kind}: ${family.expected}.`;
    throw new InvalidStatement('format_not_supported', message);
  }
  // A transfer may fill the file with zeros before it writes.
  if (!isXml(head)) throw fault(`The file is empty or no XML: ${family.expected}.`);
  const decoder = createDecoder(head);
  const parser = createParser(family, decoder, reader);
  for await (const chunk of chunks) {
    parser.write(decoder.decode(chunk));
    await setImmediate();
  }
  parser.write(decoder.decode());
  parser.end();
}

type OpenElement = Omit<Element, 'children'> & { children: Element[] };

interface Frame {
  element: OpenElement;
  line: number;
  /** Elements that were read before it. */
  size: number;
}

/** Follows the depth of elements, and the messages in them. */
function createParser(family: MessageFamily, decoder: Decoder, reader: PartReader) {
  const parser = new SaxesParser({ xmlns: true, fragment: true });
  const refuse = (what: string) => fault(`The file ${what} in line ${parser.line}.`);
  const tree = createTree(decoder, reader, () => parser.line);
  let depth = 0;
  /** Depth of a message's document; 0: none. */
  let top = 0;
  let messages = 0;
  let messagesBefore = 0;
  let attributes = 0;
  let sinceToken = 0;
  /** Begin of a tag that goes on in the next chunk. */
  let rest = '';

  parser.on('opentagstart', () => {
    attributes = 0;
  });
  parser.on('attribute', () => {
    sinceToken = 0;
    attributes += 1;
    if (attributes > ATTRIBUTES_MAX) throw refuse('has an element with too many attributes');
  });
  parser.on('opentag', (tag) => {
    sinceToken = 0;
    depth += 1;
    if (depth > DEPTH_MAX) throw refuse(`is nested more than ${DEPTH_MAX} times`);
    if (depth === 1) messagesBefore = messages;
    if (top > 0) {
      tree.open(tag);
    } else if (tag.local === 'Document') {
      tree.begin(readMessageName(tag.uri, family), tag.uri);
      top = depth;
      messages += 1;
    }
  });
  parser.on('closetag', ({ local }) => {
    sinceToken = 0;
    if (top === depth) {
      tree.end();
      top = 0;
    } else if (top > 0) {
      tree.close(local);
    }
    depth -= 1;
    // A business header may come as a document of its own.
    if (depth > 0 || local === 'AppHdr' || messages > messagesBefore) return;
    const code = messages === 0 ? 'format_not_supported' : 'file_invalid';
    throw new InvalidStatement(code, `The file has XML of another kind: ${family.expected}.`);
  });
  const addText = (text: string) => {
    sinceToken = 0;
    if (top > 0) tree.addText(text);
    else if (depth === 0 && !/^[\s\ufeff]*$/.test(text)) throw refuse('has text outside of XML');
  };
  parser.on('text', addText);
  parser.on('cdata', addText);

  const parse = (text: string | null) => {
    try {
      parser.write(text);
    } catch (error) {
      if (error instanceof InvalidStatement) throw error;
      // A document type may hold entities that grow as they are read.
      if (/doctype/.test(String(error))) throw fault('The file has a document type (DTD).');
      const message = `The file is not complete, well-formed XML: see line ${parser.line}.`;
      throw fault([message, decoder.flaw ?? ''].join(' ').trim());
    }
  };
  return {
    write: (decoded: string) => {
      const text = rest + decoded;
      const begin = text.lastIndexOf('<');
      const isOpen = begin >= 0 && text.length - begin < 1_000 && !text.includes('>', begin);
      const end = isOpen ? begin : text.length;
      rest = text.slice(end);
      // Declarations come wherever files were joined, and say no more than the encoding.
      const content = text.slice(0, end).replace(/<\?xml\s[^<>]*\?>/g, (declaration) => {
        tree.declare(readDeclared(declaration));
        return declaration.replace(/[^\n]/g, ' ');
      });
      sinceToken += content.length;
      if (sinceToken > TOKEN_MAX) throw refuse('has a name or text of more than 10 MiB');
      parse(content);
    },
    end: () => {
      parse(rest);
      parse(null);
      if (messages === 0) throw fault('The file has no message: it is empty or cut off.');
      if (decoder.flaw !== undefined) reader.note(`${decoder.flaw} Nothing that is read has it.`);
    },
  };
}

function fault(message: string): InvalidStatement {
  return new InvalidStatement('file_invalid', message);
}

const MESSAGE_NAME = /(?:^|[^a-z\d])(([a-z]{4}[.]\d{3})[.]\d{3}[.](\d\d))(?!\d)/i;

type Message = Pick<MessageKind, 'container' | 'parts'> & { name: string };

/** @param uri of ISO, or of a bank or a country, with the name of the message */
function readMessageName(uri: string, { kinds, expected }: MessageFamily): Message {
  const [, name = '', kind = '', version] = MESSAGE_NAME.exec(uri.toLowerCase()) ?? [];
  const found = kinds[kind];
  const [first, last] = found?.versions ?? [];
  if (found !== undefined && Number(version) >= Number(first) && Number(version) <= Number(last)) {
    return { name, container: found.container, parts: found.parts };
  }
  const what = name === '' ? 'XML of another kind' : `${name}${ADVICE[kind] ?? ''}`;
  throw new InvalidStatement('format_not_supported', `The file is ${what}: ${expected}.`);
}

export const CREDITOR_REFERENCE = 'CreditorReference';
/** IDs and references that the free text of an element may mean. */
export const MENTION = 'Mention';
const REMITTANCE = 'RmtInf';
const FREE_TEXT = new Set([REMITTANCE, 'AddtlTxInf', 'AddtlNtryInf']);

/** Personal data and free text, and what is as long and of no use. */
const UNREAD = new Set([
  ...['RltdPties', 'RltdAgts', 'RltdRmtInf', 'SplmtryData'],
  ...['CardTx', 'Ownr', 'Svcr', 'Orgtr', 'AddtlInf', 'Prxy', 'Nm', 'Pty', 'Agt'],
  ...['OrgnlTxRef', 'TxsSummry', 'RltdAcct', 'Intrst', 'Purp', 'RltdDts', 'AddtlStmtInf'],
  ...['AddtlNtfctnInf', 'InstgAgt', 'InstdAgt', 'InitgPty', 'MsgRcpt', 'AddtlRptInf'],
]);

/** Longest text that is shared, as of days and codes. */
const SHARED_MAX = 12;
const NO_ELEMENTS: Element[] = [];
const ODD_MAX = 3;

/** Builds small trees of what is read. */
function createTree(decoder: Decoder, reader: PartReader, getLine: () => number) {
  let message: Message = { name: '', container: '', parts: [] };
  let namespace = '';
  let hasContainer = false;
  const frames: Frame[] = [];
  let size = 0;
  /** Depth below an element that is not read; 0: none. */
  let unread = 0;
  let unreadText = 0;
  let isUnreadLeaf = false;
  const leaves = new Map<string, Element>();
  let odd: string[] = [];
  let oddCount = 0;
  let firstDeclared: string | undefined;
  let declared: string | undefined;

  const checkOdd = (name: string, length: number) => {
    if (!isOdd(name, length)) return;
    oddCount += 1;
    if (odd.length < ODD_MAX) odd.push(`${name} in line ${getLine()}`);
  };
  const reportOdd = () => {
    if (oddCount === 0) return;
    const more = oddCount > odd.length ? ` and ${oddCount - odd.length} more` : '';
    reader.note(`Not as in the schema, and not read: ${odd.join(', ')}${more}.`);
    odd = [];
    oddCount = 0;
  };
  const findFault = ({ name, text, children, currency }: Element, parent: string) => {
    const place = `${name} in line ${getLine()}`;
    const invalid = `The file is not valid ${message.name}: see ${place}`;
    const missing = REQUIRED[name]?.find((each) => !children.some((child) => child.name === each));
    if (missing !== undefined) return `${invalid}, which lacks ${missing}.`;
    const rule = getRule(parent, name);
    if (rule === undefined || children.length > 0) return undefined;
    if (decoder.flaw !== undefined && text.includes('\ufffd')) return `${place}: ${decoder.flaw}`;
    if (declared !== firstDeclared && /[^\0-\x7f]/.test(text)) {
      return `${place} may be of another encoding than the begin of the file: convert all of it to UTF-8.`;
    }
    const isMoney = /Amt$/.test(name);
    const isGood = rule(text) && (!isMoney || /^[A-Z]{3}$/.test(currency ?? ''));
    return isGood ? undefined : `${invalid}.`;
  };
  /** Long texts are copied, so that they do not keep the chunk that has them. */
  const share = (leaf: Element): Element => {
    const { name, text, currency } = leaf;
    if (leaf.fault !== undefined) return leaf;
    if (text.length > SHARED_MAX) return { ...leaf, text: Buffer.from(text).toString() };
    const key = `${name} ${currency} ${text}`;
    const shared = leaves.get(key);
    if (shared !== undefined) return shared;
    if (leaves.size > 10_000) leaves.clear();
    leaves.set(key, leaf);
    return leaf;
  };
  const attach = (parent: OpenElement, element: Element) => {
    if (parent.children === NO_ELEMENTS) parent.children = [];
    const isTwice =
      parent.fault === undefined &&
      getRule(parent.name, element.name) !== undefined &&
      parent.children.some(({ name }) => name === element.name);
    if (isTwice) parent.fault = `${parent.name} has a second ${element.name} in line ${getLine()}.`;
    parent.children.push(element);
    // Which balances are read is not known here.
    if (element.name !== 'Bal') parent.fault ??= element.fault;
  };

  return {
    declare: (encoding = 'utf-8') => {
      firstDeclared ??= encoding;
      declared = encoding;
    },
    begin: (begun: Message, uri: string) => {
      message = begun;
      namespace = uri;
      hasContainer = false;
    },
    open: ({ local: name, uri, attributes }: SaxesTagNS) => {
      unreadText = 0;
      isUnreadLeaf = true;
      const isTop = frames.length === 0;
      // A charge has its tax, too; that of a transaction names parties.
      const isTax = name === 'Tax' && frames.at(-1)?.element.name === 'TxDtls';
      const isRead =
        uri === namespace && (isTop ? name === message.container : !UNREAD.has(name) && !isTax);
      if (unread > 0 || !isRead) {
        unread += 1;
        return;
      }
      hasContainer = true;
      size += 1;
      if (size > ELEMENTS_MAX) {
        throw fault(
          `The file has more than ${ELEMENTS_MAX} elements in one before line ${getLine()}.`,
        );
      }
      const currency = attributes['Ccy']?.value;
      const element = { name, text: '', currency, children: NO_ELEMENTS, fault: undefined };
      frames.push({ element, line: getLine(), size: size - 1 });
    },
    addText: (text: string) => {
      if (unread > 0) {
        unreadText += text.trim().length;
        return;
      }
      const element = frames.at(-1)?.element;
      if (element !== undefined && element.text.length < TEXT_MAX) element.text += text;
    },
    close: (name: string) => {
      if (unread > 0) {
        unread -= 1;
        if (isUnreadLeaf) checkOdd(name, unreadText);
        isUnreadLeaf = false;
        return;
      }
      const frame = frames.pop();
      if (frame === undefined) return;
      const { element } = frame;
      const parent = frames.at(-1)?.element;
      const isLeaf = element.children.length === 0;
      element.text = isLeaf ? element.text.trim() : '';
      if (isLeaf) checkOdd(name, element.text.length);
      element.fault ??= findFault(element, parent?.name ?? '');
      if (parent === undefined || message.parts.includes(name)) {
        const instead = reader.take({ message: message.name, element, parent });
        size = frame.size + (instead === undefined ? 0 : INSTEAD_SIZE);
        if (parent !== undefined && instead !== undefined) attach(parent, instead);
        if (!ENTRY.includes(name)) reportOdd();
      } else if (FREE_TEXT.has(name)) {
        const ours = readOurs(element, reader.names);
        size = frame.size + ours.length;
        for (const each of ours) attach(parent, each);
      } else {
        attach(parent, isLeaf ? share(element) : element);
      }
    },
    end: () => {
      if (!hasContainer)
        throw fault(`The file is not valid ${message.name}: it lacks ${message.container}.`);
    },
  };
}

/** Reads only references of ours in a text, which a bank may have cut into lines. */
function readOurs(element: Element, names: readonly string[] | undefined): Element[] {
  const listAll = (path: string) => findAll(element, path).map(({ text }) => text);
  const texts = [listAll('Ustrd').join(''), ...listAll('Strd/CdtrRefInf/Ref')];
  const reference = element.name === REMITTANCE ? findCreditorReference(texts) : null;
  const build = (name: string, text: string): Element => ({
    ...{ name, text, currency: undefined, children: NO_ELEMENTS, fault: undefined },
  });
  return [
    ...(reference === null ? [] : [build(CREDITOR_REFERENCE, reference)]),
    ...findMentions([...listTexts(element)].join('\n'), names).map((text) => build(MENTION, text)),
  ];
}

function* listTexts({ text, children }: Element): Generator<string> {
  yield text;
  for (const child of children) yield* listTexts(child);
}

/** @throws InvalidStatement if what is read of it is not valid */
export function assertValid(element: Element | undefined): void {
  if (element?.fault !== undefined) throw fault(element.fault);
}

export function findAll(element: Element | undefined, path: string): readonly Element[] {
  if (element === undefined) return [];
  return path
    .split('/')
    .reduce<readonly Element[]>(
      (parents, name) =>
        parents.flatMap(({ children }) => children.filter((child) => child.name === name)),
      [element],
    );
}

export function find(element: Element | undefined, path: string): Element | undefined {
  const end = path.indexOf('/');
  const name = end < 0 ? path : path.slice(0, end);
  for (const child of element?.children ?? []) {
    if (child.name !== name) continue;
    const found = end < 0 ? child : find(child, path.slice(end + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}

export function textAt(element: Element | undefined, path: string): string | undefined {
  return find(element, path)?.text || undefined;
}

/** XML also writes `true` as `1`. */
export function isTrueAt(element: Element | undefined, path: string): boolean {
  return /^(?:true|1)$/.test(textAt(element, path) ?? '');
}
