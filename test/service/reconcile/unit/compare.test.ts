import { type Booking, compare, REFUSED } from '../../../../src/service/reconcile/state';

const at = (version: number, status = 'sent', ...bookings: Booking[]) => ({
  status,
  version,
  bookings,
});

test.each([
  ['nothing was opened, nothing is stored', null, null, null],
  ['stored, while its workflow knows nothing of it yet', null, at(1), null],
  ['opened, and not stored', at(1), null, 'missing'],
  ['stored at an earlier version', at(3), at(2), 'behind'],
  ['stored at a later version', at(3), at(4), 'ahead'],
  ['a booking that is not stored', at(3, 'sent', 'clawBack'), at(3), 'behind'],
  ['a booking more in store', at(3), at(3, 'sent', 'clawBack'), null],
  ['both at the same place', at(3), at(3), null],
  ['the same version in two states', at(3), at(3, 'failed'), 'contradicts'],
  ['refused, and not stored', REFUSED, null, null],
  ['refused, and stored all the same', REFUSED, at(1, 'created'), 'contradicts'],
])('%s', (_case, workflow, document, difference) => {
  expect(compare(workflow, document)).toBe(difference);
});
