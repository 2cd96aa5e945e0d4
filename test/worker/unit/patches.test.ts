import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createPatchActivation, PATCHES } from '../../../worker/patches';

const FOLDER = join(__dirname, '../../../workflows');
const CODE = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => readFileSync(join(FOLDER, name), 'utf8'))
  .join('\n');

/** Ids that the workflows' code passes to `patched`, as a text or as a constant. */
function listPatches(): string[] {
  const ids = [...CODE.matchAll(/\bpatched\((?:'([^']+)'|(\w+))\)/g)].map(([, text, constant]) => {
    return text ?? new RegExp(`const ${constant} = '([^']+)'`).exec(CODE)?.[1] ?? '';
  });
  return [...new Set(ids)].sort();
}

test('each change behind `patched()` is in the table, and no other', () => {
  expect(Object.keys(PATCHES).sort()).toEqual(listPatches());
});

test('one that is inactive keeps the old behavior', () => {
  const isActive = createPatchActivation({ new: 'inactive', old: 'active' });
  const workflowInfo = Object();
  expect(isActive({ workflowInfo, patchId: 'new' })).toBe(false);
  expect(isActive({ workflowInfo, patchId: 'old' })).toBe(true);
});
