import { mongodbUri, temporalAddress } from './support/servers';
import { startService } from './support/service';

const TOLD = /^There is no TEST_\w+\. A unit test has no servers: one that needs them belongs in/;

test('a unit test that asks for a server is told where it belongs', async () => {
  expect(() => mongodbUri()).toThrow(TOLD);
  expect(() => temporalAddress()).toThrow(TOLD);
  await expect(startService()).rejects.toThrow(TOLD);
});
