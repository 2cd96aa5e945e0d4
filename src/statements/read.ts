import { InvalidStatement, type Statement } from '../domain/statement';
import { readCamt } from './camt';
import { readCsv } from './csv';
import { parseMessage } from './xml';

/** Larger months come as several files. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;

export interface StatementFile {
  /** Message's name, or `csv`. */
  format: string;
  statements: Statement[];
}

/** @throws InvalidStatement */
export async function readStatementFile(bytes: Uint8Array): Promise<StatementFile> {
  assertSize(bytes.length);
  if (!isXml(bytes)) {
    return { format: 'csv', statements: readCsv(bytes) };
  }
  const xml = await parseMessage(bytes);
  try {
    return { format: xml.message, statements: readCamt(xml) };
  } finally {
    xml.dispose();
  }
}

/** @throws InvalidStatement `file_too_large` */
export function assertSize(bytes: number): void {
  if (bytes <= FILE_BYTES_MAX) return;
  throw new InvalidStatement(
    'file_too_large',
    `The file has more than ${FILE_BYTES_MAX / 1024 / 1024} MiB: import it as several files.`,
  );
}

function isXml(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.subarray(0, 200)).toString('latin1');
  return /^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*</.test(head);
}
