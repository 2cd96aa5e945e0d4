import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ROOT, textOf } from './pages';

test('the list of saved histories is what the folder holds', () => {
  const listed = textOf('test/replay/README.md').matchAll(
    /`((?:payment|refund|payout|webhook|crypto|schedule|clock)-[\w-]+)`/g,
  );
  const stored = readdirSync(join(ROOT, 'test/replay/histories')).map((name) =>
    basename(name, '.json'),
  );
  expect([...listed].map(([, name]) => name).sort()).toEqual(stored.sort());
});
