import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** Variable that names a file with a secret; its value is the trimmed content. */
export const secretFile: z.ZodType<string, string> = z.string().transform((path, ctx) => {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    ctx.addIssue({ code: 'custom', message: `the file ${path} cannot be read` });
    return z.NEVER;
  }
});
