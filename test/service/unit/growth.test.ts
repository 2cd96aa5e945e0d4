import { GROWTH } from '../../../src/service/growth';
import { WRITES } from '../../../src/service/mongo-roles';

test('each collection is in the table of what grows, once', () => {
  const named = GROWTH.flatMap(({ collections }) => collections);
  expect(named.toSorted()).toEqual(Object.keys(WRITES).toSorted());
});
