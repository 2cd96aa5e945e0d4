import { z } from 'zod';
import { PROGRAM } from '../src/base/program';
import { LIBRARIES, VARIABLES } from '../src/variables';

export interface Variable {
  name: string;
  description: string;
  usual: string;
  alone: string;
  isLauncher: boolean;
}

const Meta = z.object({
  description: z.string(),
  usual: z.string().optional(),
  launcher: z.boolean().default(false),
});

/** @throws ZodError if a field lacks a description */
export function listFields(schema: z.ZodObject): Variable[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const standard = readDefault(field);
    const meta = Meta.parse(z.globalRegistry.get(field) ?? {});
    const { description, usual = standard, launcher: isLauncher } = meta;
    // Without a default in the schema, the code that reads the field has one.
    const alone = standard === 'none' && !isLauncher ? usual : standard;
    return { name, description, usual, alone, isLauncher };
  });
}

function readDefault(field: z.core.$ZodType): string {
  const { success, data } = z.safeParse(field, undefined);
  if (!success) return 'required';
  return data === undefined || data === '' ? 'none' : String(data);
}

/** A library's variables count as one, by their common prefix. */
export function listVariables(): Variable[] {
  const ofLibraries = Object.entries(LIBRARIES).map(([name, description]) => {
    return { name, description, usual: 'none', alone: 'none', isLauncher: false };
  });
  return [...listFields(VARIABLES), ...ofLibraries];
}

const variables = listVariables().filter(({ isLauncher }) => !isLauncher);
const NAME_WIDTH = Math.max(...variables.map(({ name }) => name.length));

const lines = variables.map(({ name, usual, description }) => {
  const text = description.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1').replaceAll('`', '');
  return `  ${name.padEnd(NAME_WIDTH)}  ${text} (default: ${usual})`;
});

export const USAGE = `${PROGRAM.start}: runs the whole service on this machine.

Finds or fetches Temporal and MongoDB, starts them, the api, the worker and the sandbox bank,
restarts a part that dies, and stops all on Ctrl-C or SIGTERM. The first start makes a demo
account and prints its keys.

  --inspect PART[:PORT]  lets a debugger attach to that process alone: api, worker or
                         sandbox_bank; port 9229 by default
  --watch                builds when a source changes and restarts what the change concerns;
                         the servers stay up. \`npm run dev\` is \`npm start -- --watch\`
  --help                 this text

Environment:
${lines.join('\n')}

A second stack runs next to the first with its own PORT, TEMPORAL_UI_PORT and DATA_DIR.
`;
