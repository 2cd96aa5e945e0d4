import { Contention } from '../../../src/base/mongo';
import { explain } from '../../../src/cli/failure';

test('a step that met others for too long is told as not done, and no fault', () => {
  expect(
    explain(new Contention('The transaction had write conflicts for 5 seconds.', 100)),
  ).toEqual({
    code: 'busy',
    message: expect.stringMatching(/not done: run it again/),
  });
});
