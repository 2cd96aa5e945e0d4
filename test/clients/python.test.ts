import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fund } from '../api/fund';
import { useFixture } from '../support/fixture';
import { runProgram } from '../support/programs';
import { describeWith, installPythonTools } from '../support/python-tools';
import { useAccount, useService } from '../support/service';

const PACKAGE = join(__dirname, '../../clients/python');
const PYTHON = 'python3';

describeWith(PYTHON, 'the Python client', () => {
  const service = useService();
  const account = useAccount(service);
  const work = useFixture(
    async () => {
      const folder = mkdtempSync(join(tmpdir(), 'python-client-'));
      const source = join(folder, 'package');
      cpSync(PACKAGE, source, { recursive: true });
      const tools = await installPythonTools(join(PACKAGE, 'requirements-dev.txt'));
      return { folder, source, env: { PYTHONPATH: tools, PYTHONDONTWRITEBYTECODE: '1' } };
    },
    ({ folder }) => rmSync(folder, { recursive: true }),
  );

  test('its own tests pass against the stack', async () => {
    const { source: cwd, env } = work;
    const PYTHONPATH = join(cwd, 'src');
    await fund(service, account, 1_000_000);
    const stack = { DURABLE_PAYMENTS_URL: service.url, DURABLE_PAYMENTS_KEY: account.key };
    const args = ['-W', 'error', '-m', 'unittest', 'discover', '-s', 'tests', '-t', '.'];
    await runProgram(PYTHON, args, { cwd, env: { ...env, ...stack, PYTHONPATH } });
  });

  test('it is fully typed', async () => {
    const { source: cwd, env } = work;
    expect(await runProgram(PYTHON, ['-m', 'mypy'], { cwd, env })).toContain('no issues found');
  });

  test('its wheel is installed in a project, which type-checks and runs', async () => {
    const { folder, source, env } = work;
    const wheel = ['wheel', '-q', '--no-deps', '--no-build-isolation', '--no-index', '-w', folder];
    await runProgram(PYTHON, ['-m', 'pip', ...wheel, source], { env });
    const file = readdirSync(folder).find((name) => name.endsWith('.whl')) ?? '';
    expect(file).toBe('durable_payments-1.0.0-py3-none-any.whl');
    const venv = join(folder, 'venv');
    await runProgram(PYTHON, ['-m', 'venv', '--without-pip', venv]);
    const python = join(venv, 'bin/python');
    const install = ['--python', python, 'install', '-q', '--no-index', join(folder, file)];
    await runProgram(PYTHON, ['-m', 'pip', ...install]);
    const shop = join(PACKAGE, 'consumer/shop.py');
    const check = ['-m', 'mypy', '--strict', '--python-executable', python, shop];
    await runProgram(PYTHON, check, { cwd: folder, env });
    const output = await runProgram(python, [shop, service.url, account.key]);
    expect(output).toMatch(/^(?:created|awaiting_customer) payment_not_found\n$/);
  });
});
