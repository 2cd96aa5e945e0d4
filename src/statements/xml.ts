import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { XmlDocument, XmlElement, XmlTreeNode, XsdValidator } from 'libxml2-wasm';
import { findCreditorReference } from '../domain/payment/creditor-reference';
import { findMentions, InvalidStatement } from '../domain/statement';

/** @see src/statements/xsd/README.md */
const SCHEMA_VERSIONS: Readonly<Record<string, readonly string[]>> = {
  'camt.053.001': ['02', '08', '13'],
  'camt.054.001': ['02', '08', '13'],
  'pacs.004.001': ['09'],
  'pain.001.001': ['09'],
  'pain.002.001': ['03', '10', '15'],
};

export interface MessageFamily {
  versions: Readonly<Record<string, readonly string[]>>;
  expected: string;
}

/** Versions that are read: those between the first two moved elements. */
const STATEMENT_VERSIONS = ['02', '08', '09', '10', '11', '12', '13', '14'];

export const STATEMENT_MESSAGES: MessageFamily = {
  versions: { 'camt.053.001': STATEMENT_VERSIONS, 'camt.054.001': STATEMENT_VERSIONS },
  expected: 'statements are camt.053 and camt.054 of version 001.02, or 001.08 to 001.14, or CSV',
};

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:';

/** The package is an ES module that compiles as it loads, so CommonJS cannot require it. */
const load = () => import('libxml2-wasm');
type Library = Awaited<ReturnType<typeof load>>;

export interface Xml {
  /** For example `camt.053.001.08`. */
  message: string;
  root: XmlElement;
  dispose(): void;
}

/**
 * Parses an ISO 20022 message, and validates it by its schema. It loads nothing and refuses a
 * document type. Memory: about eight times the file.
 * @throws InvalidStatement
 */
export async function parseMessage(
  bytes: Uint8Array,
  family: MessageFamily = STATEMENT_MESSAGES,
): Promise<Xml> {
  const library = await load();
  const document = parse(library, bytes);
  try {
    if (document.dtd !== null) throw createDtdError();
    const message = readMessageName(document.root, family);
    validate(library, document, message);
    return { message, root: document.root, dispose: () => document.dispose() };
  } catch (error) {
    document.dispose();
    throw error;
  }
}

/** @throws InvalidStatement */
export async function checkMessage(bytes: Uint8Array, name: string): Promise<void> {
  const versions = { [name.slice(0, -3)]: [name.slice(-2)] };
  const { dispose } = await parseMessage(bytes, { versions, expected: `it must be ${name}` });
  dispose();
}

function parse({ XmlDocument, XmlParseError, ParseOption }: Library, bytes: Uint8Array) {
  // A document type may hold entities that grow as they are read.
  if (Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes('<!DOCTYPE')) {
    throw createDtdError();
  }
  const { XML_PARSE_NONET, XML_PARSE_NO_XXE, XML_PARSE_COMPACT } = ParseOption;
  const option = XML_PARSE_NONET | XML_PARSE_NO_XXE | XML_PARSE_COMPACT;
  try {
    return XmlDocument.fromBuffer(bytes, { option });
  } catch (error) {
    if (!(error instanceof XmlParseError)) throw error;
    const line = error.details[0]?.line ?? 1;
    throw new InvalidStatement(
      'file_invalid',
      `The file is not complete, well-formed XML: see line ${line}.`,
    );
  }
}

function createDtdError(): InvalidStatement {
  return new InvalidStatement('file_invalid', 'The file has a document type (DTD).');
}

function readMessageName(root: XmlElement, { versions, expected }: MessageFamily): string {
  const uri = root.namespaceUri;
  const name = uri.startsWith(NAMESPACE) ? uri.slice(NAMESPACE.length) : '';
  const [, message = '', version = ''] = /^([a-z]{4}[.]\d{3}[.]\d{3})[.](\d{2})$/.exec(name) ?? [];
  if (versions[message]?.includes(version)) return name;
  const known = /^[a-z]{4}(?:[.]\d{2,3}){3}$/.test(name) ? name : 'XML of another kind';
  throw new InvalidStatement('format_not_supported', `The file is ${known}: ${expected}.`);
}

const validators = new Map<string, XsdValidator>();

function getValidator({ XmlDocument, XsdValidator }: Library, message: string): XsdValidator {
  const validator = validators.get(message);
  if (validator !== undefined) return validator;
  // A version without its own schema has the next one's, or the latest: since 001.08, statements only
  // gain elements.
  const [kind, version] = [message.slice(0, -3), message.slice(-2)];
  const versions = SCHEMA_VERSIONS[kind] ?? [];
  const name = `${kind}.${versions.find((each) => each >= version) ?? versions.at(-1)}`;
  const text = readFileSync(join(__dirname, 'xsd', `${name}.xsd`), 'utf8');
  // A schema names the version that it is for.
  const own = text
    .replaceAll(NAMESPACE + name, NAMESPACE + message)
    // Lists no status of a name check: external codes of four letters, as in later versions.
    .replaceAll(
      /"Transaction(?:Group|Individual)Status3Code"\/>/g,
      '"ExternalStatusReason1Code"/>',
    );
  const schema = XmlDocument.fromString(own);
  const fresh = XsdValidator.fromDoc(schema);
  schema.dispose();
  validators.set(message, fresh);
  return fresh;
}

function validate(library: Library, document: XmlDocument, message: string): void {
  try {
    getValidator(library, message).validate(document);
  } catch (error) {
    if (!(error instanceof library.XmlValidateError)) throw error;
    const [detail] = error.details;
    // The rest of the message may quote a person's name.
    const name = /^Element '(?:\{[^}]*\})?(\w+)'/.exec(detail?.message ?? '')?.[1] ?? 'an element';
    const place = detail === undefined ? '' : ` in line ${detail.line}`;
    throw new InvalidStatement(
      'file_invalid',
      `The file is not valid ${message}: see ${name}${place}.`,
    );
  }
}

export interface Element {
  text: string;
  currency: string | undefined;
  children: ReadonlyMap<string, readonly Element[]>;
}

export const CREDITOR_REFERENCE = 'CreditorReference';
/** IDs and references that the free text of an element may mean. */
export const MENTION = 'Mention';
const REMITTANCE = 'RmtInf';
const FREE_TEXT = new Set([REMITTANCE, 'AddtlTxInf', 'AddtlNtryInf']);

/** Personal data and free text, which are not read. */
const PRIVATE = new Set([
  ...['RltdPties', 'RltdAgts', REMITTANCE, 'RltdRmtInf', 'AddtlTxInf', 'AddtlNtryInf'],
  ...['SplmtryData'],
  ...['CardTx', 'Ownr', 'Svcr', 'Orgtr', 'AddtlInf', 'Prxy', 'Nm', 'Pty', 'Agt'],
]);

export function* childElements(parent: XmlElement, name: string): Generator<XmlElement> {
  for (let child = parent.firstChild; child !== null; child = child.next) {
    if (isElement(child) && child.name === name) yield child;
  }
}

/** @param skip elements below the first level that are read later */
export function readElement(element: XmlElement, skip?: string): Element {
  const children = new Map<string, Element[]>();
  for (let child = element.firstChild; child !== null; child = child.next) {
    if (!isElement(child)) continue;
    const { name } = child;
    const reference = name === REMITTANCE ? readCreditorReference(child) : null;
    if (reference !== null) children.set(CREDITOR_REFERENCE, [buildLeaf(reference)]);
    if (FREE_TEXT.has(name)) {
      const found = findMentions(child.content).map(buildLeaf);
      children.set(MENTION, [...(children.get(MENTION) ?? []), ...found]);
    }
    if (name === skip || PRIVATE.has(name)) continue;
    // A charge has its tax, too; that of a transaction names parties.
    if (name === 'Tax' && element.name === 'TxDtls') continue;
    const same = children.get(name);
    if (same === undefined) children.set(name, [readElement(child)]);
    else same.push(readElement(child));
  }
  const isLeaf = children.size === 0;
  return {
    text: isLeaf ? element.content.trim() : '',
    currency: isLeaf ? element.attr('Ccy')?.value : undefined,
    children,
  };
}

const buildLeaf = (text: string): Element => ({ text, currency: undefined, children: new Map() });

/** Reads only our reference, which a bank may have cut into lines. */
function readCreditorReference(remittance: XmlElement): string | null {
  const lines = [...childElements(remittance, 'Ustrd')].map(({ content }) => content);
  const structured = [...childElements(remittance, 'Strd')]
    .flatMap((each) => [...childElements(each, 'CdtrRefInf')])
    .flatMap((each) => [...childElements(each, 'Ref')])
    .map(({ content }) => content);
  return findCreditorReference([lines.join(''), ...structured]);
}

function isElement(node: XmlTreeNode): node is XmlElement {
  return 'firstChild' in node;
}

export function findAll(element: Element | undefined, path: string): readonly Element[] {
  if (element === undefined) return [];
  return path
    .split('/')
    .reduce<readonly Element[]>(
      (parents, name) => parents.flatMap(({ children }) => children.get(name) ?? []),
      [element],
    );
}

export function find(element: Element | undefined, path: string): Element | undefined {
  return findAll(element, path)[0];
}

export function textAt(element: Element | undefined, path: string): string | undefined {
  return find(element, path)?.text || undefined;
}

/** XML also writes `true` as `1`. */
export function isTrueAt(element: Element | undefined, path: string): boolean {
  return /^(?:true|1)$/.test(textAt(element, path) ?? '');
}
