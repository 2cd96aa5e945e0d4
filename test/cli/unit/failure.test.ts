import { explain } from '../../../src/cli/failure';
import { Contention } from '../../../src/mongo';

test('a step that met others for too long is told as not done, and no fault', () => {
  expect(explain(new Contention('The transaction met others for 5 seconds.', 100))).toEqual({
    code: 'busy',
    message: expect.stringMatching(/not done: run it again/),
  });
});
