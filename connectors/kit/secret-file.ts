import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { warnOfReaders } from '../../src/encryption/key-file';

const log = {
  warn: (facts: object, message: string) =>
    process.emitWarning(`${message}: ${JSON.stringify(facts)}`),
};

/**
 * Variable that names a file with a secret; its value is the trimmed content. Warns if others can
 * read the file.
 */
export const secretFile: z.ZodType<string, string> = z.string().transform((path, ctx) => {
  try {
    const text = readFileSync(path, 'utf8').trim();
    warnOfReaders(path, log);
    return text;
  } catch {
    ctx.addIssue({ code: 'custom', message: `the file ${path} cannot be read` });
    return z.NEVER;
  }
});
