import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { ConnectorKey } from './mac';

const KeyFile = z.object({
  key_id: z.string().startsWith('cnkey_'),
  secret: z.string().startsWith('cnsec_'),
});

/**
 * Reads the key that a connector's process signs with, as `connector key create NAME --json` printed
 * it; undefined where no file is named.
 * @throws Error, which quotes nothing of the file, when it is missing or no such file
 */
export function readConnectorKey(path: string): ConnectorKey | undefined {
  if (path === '') return undefined;
  const { data } = KeyFile.safeParse(parsedOrNone(readFileSync(path, 'utf8')));
  if (data !== undefined) return data;
  throw new Error(
    `CONNECTOR_KEY_FILE: ${path} holds no key as \`connector key create\` prints it.`,
  );
}

function parsedOrNone(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
