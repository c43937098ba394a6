// Write a log of promptfoo, without a network: `node write_promptfoo.mjs SUMS.json FILE.json REPEATS`, where SUMS.json
// has the questions and the answers of programs, as `python adders.py NUMBER` prints them.
//
// `npm install promptfoo` in the folder of this file.
import { readFileSync } from "node:fs";

process.env.PROMPTFOO_DISABLE_TELEMETRY = "1";
process.env.PROMPTFOO_DISABLE_UPDATE = "1";
const { default: promptfoo } = await import("promptfoo");
const [sums, file, repeats] = process.argv.slice(2);
const { questions, answers } = JSON.parse(readFileSync(sums, "utf8"));

const shareOfDigits = (output, { vars }) => {
  const right = [...vars.answer].filter((digit, at) => output.at(at - vars.answer.length) === digit).length;
  return { pass: true, score: right / vars.answer.length, reason: `${right} digits` };
};
await promptfoo.evaluate(
  {
    prompts: ["{{question}}"],
    providers: Object.entries(answers).map(([name, of]) => Object.assign(
      async (prompt) => ({ output: of[prompt] }), { label: name })),
    tests: questions.map((vars) => ({
      vars,
      assert: [
        { type: "equals", value: vars.answer, metric: "exact" },
        { type: "javascript", value: shareOfDigits, metric: "digits" },
      ],
    })),
    outputPath: file,
    writeLatestResults: false,
  },
  { repeat: Number(repeats), maxConcurrency: 1, cache: false, showProgressBar: false },
);
process.exit(0);
