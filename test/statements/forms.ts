export const declare = (text: string, encoding: string) => text.replace('UTF-8', encoding);
const undeclare = (text: string) => text.replace(' encoding="UTF-8"', '');
export const latin1 = (text: string) => Buffer.from(text, 'latin1');
/** How a bank may encode a file. */
export const ENCODINGS: Readonly<Record<string, (text: string) => Buffer>> = {
  'UTF-8': (text) => Buffer.from(text),
  'UTF-8 with a BOM': (text) => Buffer.from(`\ufeff${text}`),
  'UTF-16': (text) => Buffer.from(`\ufeff${declare(text, 'UTF-16')}`, 'utf16le'),
  'UTF-16 of the other order': (text) => Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
  'UTF-16 without a BOM': (text) => Buffer.from(undeclare(text), 'utf16le'),
  'UTF-8 that says UTF-16': (text) => Buffer.from(declare(text, 'utf-16')),
  'Latin 1': (text) => latin1(declare(text, 'ISO-8859-1')),
  'Windows 1252': (text) => latin1(declare(text, 'windows-1252')),
  'Latin 1 that says UTF-8': latin1,
  'Latin 1 that says nothing': (text) => latin1(undeclare(text)),
};

export const PREFIXES: Readonly<Record<string, (text: string) => string>> = {
  none: (text) => text,
  own: (text) => text.replace(/<(\/?)(?=[A-Z])/g, '<$1b:').replace('xmlns=', 'xmlns:b='),
};

export const ENVELOPES: Readonly<Record<string, (text: string) => string>> = {
  none: (text) => text,
  'blank lines before': (text) => `\n \r\n${text}`,
  'a business message': (text) =>
    text
      .replace(
        /<(?:b:)?Document/,
        '<Bus:Msg xmlns:Bus="urn:bus"><AppHdr xmlns="urn:iso:std:iso:20022:tech:xsd:head.001.001.02"><BizMsgIdr>1</BizMsgIdr></AppHdr>$&',
      )
      .concat('</Bus:Msg>'),
  'a header before': (text) =>
    text.replace(/<(?:b:)?Document/, '<AppHdr xmlns="urn:h"><BizMsgIdr>1</BizMsgIdr></AppHdr>$&'),
};

export const NAMESPACES = [
  'urn:iso:std:iso:20022:tech:xsd:',
  'urn:bank.example:ebics:xsd:',
  'http://www.six-interbank-clearing.com/de/',
];
