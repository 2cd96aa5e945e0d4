import { compare } from '../../../src/reconcile/compare';

const at = (version: number, status = 'sent') => ({ status, version });

test.each([
  ['nothing was opened, nothing is stored', null, null, null],
  ['stored, while its workflow knows nothing of it yet', null, at(1), null],
  ['opened, and not stored', at(1), null, 'missing'],
  ['stored at an earlier version', at(3), at(2), 'behind'],
  ['stored at a later version', at(3), at(4), 'ahead'],
  ['both at the same place', at(3), at(3), null],
  ['the same version in two states', at(3), at(3, 'failed'), 'contradicts'],
])('%s', (_case, workflow, document, difference) => {
  expect(compare(workflow, document)).toBe(difference);
});
