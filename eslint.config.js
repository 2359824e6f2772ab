import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/.*/", "**/venv/", "build/", "dist/", "app/page_script/charts/plotly/"] },
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: { eqeqeq: "error", "no-var": "error", "prefer-const": "error" },
  },
];
