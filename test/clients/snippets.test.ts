import { join } from 'node:path';
import { signPayload } from '../../src/webhooks/signature';
import { findOnPath } from '../../stack/provision/command';
import { runProgram } from '../support/programs';
import { describeWith } from '../support/python-tools';
import { useAccount, useService } from '../support/service';

const EXAMPLES = join(__dirname, '../../docs/examples');
const SECRET = 'whsec_of_a_test';
const BODY = '{"id":"evt_1","type":"payment.settled","data":{"payment_id":"Zoë"}}';

const service = useService();
const account = useAccount(service);

const LANGUAGES = [
  ['php', ['shop.php']],
  ['go', ['run', 'shop.go']],
  ['java', ['Shop.java']],
] as const;

describe.each(LANGUAGES)('the example in %s', (program, args) => {
  const isHere = findOnPath(program, process.env['PATH']) !== undefined;
  const testIfHere = isHere ? test : test.skip;
  const run = (more: string[], input = '') =>
    runProgram(program, [...args, ...more], { cwd: EXAMPLES, input });

  testIfHere(`creates a payment (skipped without ${program})`, async () => {
    const output = await run(['create', service.url, account.key]);
    expect(output).toMatch(/http\S+\/pay\/[\w-]{40,}/);
  });

  testIfHere(`verifies webhooks (skipped without ${program})`, async () => {
    const now = Math.floor(Date.now() / 1_000);
    const verify = (signature: string, secret = SECRET) => run(['verify', secret, signature], BODY);
    const genuine = signPayload(SECRET, BODY, now);
    expect(await verify(genuine)).toContain('payment.settled');
    expect(await verify(signPayload(SECRET, BODY, now - 600))).toBe('refused\n');
    expect(await verify(genuine, 'whsec_another')).toBe('refused\n');
  });
});

describeWith('php', 'the example in PHP, where a shop includes it', () => {
  test('gives its functions alone', async () => {
    const signature = signPayload(SECRET, BODY, Math.floor(Date.now() / 1_000));
    const code = `require 'shop.php';
    echo json_encode([isGenuine($argv[1], $argv[2], $argv[3]), isGenuine($argv[1], $argv[2], 'x')]);`;
    const args = ['-d', 'display_errors=1', '-r', code, BODY, signature, SECRET];
    expect(await runProgram('php', args, { cwd: EXAMPLES })).toBe('[true,false]');
  });
});
