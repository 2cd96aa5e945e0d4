import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type WarningLog, warnOfReaders } from '../encryption/file-mode';
import { parseJson } from '../encryption/service-keys';
import type { ConnectorKey } from './mac';

const KeyFile = z.object({
  key_id: z.string().startsWith('cnkey_'),
  secret: z.string().startsWith('cnsec_'),
});

/**
 * Reads the output of `connector key create NAME --json`.
 * @returns undefined for an empty path
 * @throws Error that never quotes the file, if it is missing or invalid
 */
export function readConnectorKey(path: string, log: WarningLog): ConnectorKey | undefined {
  if (path === '') return undefined;
  const { data } = KeyFile.safeParse(parseJson(readFileSync(path, 'utf8')));
  warnOfReaders(path, log);
  if (data !== undefined) return data;
  throw new Error(
    `CONNECTOR_KEY_FILE: ${path} holds no key as \`connector key create\` prints it.`,
  );
}
