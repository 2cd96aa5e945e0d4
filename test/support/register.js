const { readFileSync } = require('node:fs');
const { transformSync } = require('@swc/core');
const { jsc } = require('./swc');

/** Lets `node --require` run the sources as they are. */
for (const extension of ['.ts', '.tsx']) {
  require.extensions[extension] = (module, filename) => {
    const source = readFileSync(filename, 'utf8');
    const options = { filename, jsc, module: { type: 'commonjs' }, sourceMaps: 'inline' };
    module._compile(transformSync(source, options).code, filename);
  };
}
