(* linked.exe requested | manual FILE FILE | external FILE | custom FILE | killed FILE | mistakes FILE
   | listening FILE | snapshot HEAPLINE FILE *)

module M = Map.Make (Int)

let words () =
  let minor, promoted, major = Gc.counters () in
  minor +. major -. promoted

(* Says how many words it allocates. *)
let[@inline never] work () =
  let before = words () in
  for round = 1 to 10 do
    let rec build m i = if i = 0 then m else build (M.add (i * round * 7919 mod 10_007) [ i ] m) (i - 1) in
    ignore (Sys.opaque_identity (build M.empty 5_000));
    ignore (Sys.opaque_identity (Array.make 5_000 round))
  done;
  words () -. before

let truth name words = Printf.eprintf "truth: %s %.0f\n%!" name words

(* Without recording: callbacks allocate, too. *)
let expected = work ()

let requested () =
  Heapline.trace_if_requested ~context:"linked" ~sampling_rate:0.5 ();
  Printf.printf "recording: %b\n" (Heapline.currently_tracing ());
  ignore (work ());
  truth "words" expected;
  (match Sys.getenv_opt "MEMTRACE" with
  | None | Some "" -> print_endline "children are not"
  | Some file -> print_endline file);
  exit 3

let manual first second =
  let record filename =
    let tracer = Heapline.start_tracing ~context:None ~sampling_rate:0.01 ~filename in
    ignore (work ());
    Heapline.stop_tracing tracer;
    Heapline.stop_tracing tracer
  in
  record first;
  ignore (work ());
  (* Blocks of the first recording die in the second one. *)
  record second;
  Gc.full_major ();
  truth "words" expected

(* Not a tail call: this function is the one to be shown. *)
let[@inline never] allocate_outside bytes = Sys.opaque_identity (Heapline.External.alloc ~bytes)

let outside filename =
  let tracer = Heapline.start_tracing ~context:None ~sampling_rate:0.001 ~filename in
  let total = ref 0 in
  for i = 1 to 100_000 do
    let bytes = 1 + (i mod 4_000) in
    total := !total + ((bytes + 7) / 8);
    match allocate_outside bytes with
    | Some token when i mod 2 = 0 -> Heapline.External.free token
    | _ -> ()
  done;
  Heapline.stop_tracing tracer;
  assert (Heapline.External.alloc ~bytes:1_000_000_000 = None);
  truth "external words" (float_of_int !total)

(* Bigarrays: blocks of the heap that survive, each with memory outside of it. *)
let custom filename =
  let tracer = Heapline.start_tracing ~context:None ~sampling_rate:0.01 ~filename in
  let arrays = List.init 2_000 (fun _ -> Bigarray.(Array1.create char c_layout 4_096)) in
  Gc.full_major ();
  ignore (Sys.opaque_identity arrays);
  Heapline.stop_tracing tracer

let killed filename =
  ignore (Heapline.start_tracing ~context:None ~sampling_rate:0.1 ~filename);
  ignore (work ());
  truth "words" expected;
  print_endline "ready";
  ignore (input_line stdin)

let mistakes filename =
  let attempt what f =
    match f () with
    | (_ : Heapline.tracer) -> Printf.printf "%s: started\n" what
    | exception Failure _ -> Printf.printf "%s: failure\n" what
    | exception Invalid_argument _ -> Printf.printf "%s: invalid argument\n" what
    | exception Sys_error _ -> Printf.printf "%s: system error\n" what
  in
  let start ?(filename = filename) sampling_rate () =
    Heapline.start_tracing ~context:None ~sampling_rate ~filename
  in
  List.iter (fun rate -> attempt (string_of_float rate) (start rate)) [ 0.; -1.; 1.5; nan ];
  attempt "nowhere" (start ~filename:"/nonexistent/folder/trace.ctf" 0.1);
  let tracker : (unit, unit) Gc.Memprof.tracker = Gc.Memprof.null_tracker in
  ignore (Gc.Memprof.start ~sampling_rate:0.1 tracker);
  attempt "sampler taken" (start 0.1);
  Printf.printf "file left: %b\n" (Sys.file_exists filename);
  Gc.Memprof.stop ();
  attempt "first" (start 0.1);
  attempt "second" (start 0.1)

(* Waits for heapline attach, and works until a file exists. *)
let listening file =
  Heapline.listen ();
  Heapline.listen ();
  let rounds = ref 0 in
  while not (Sys.file_exists file) do
    ignore (work ());
    incr rounds
  done;
  Printf.printf "worked: %b\n" (!rounds > 0)

let kept = ref []

let snapshot heapline file =
  kept := List.init 1_000 (fun i -> Bytes.create i);
  Heapline.snapshot ~heapline file;
  (match Heapline.snapshot ~heapline:"/nonexistent/heapline" file with
  | () -> print_endline "no failure"
  | exception Failure _ -> ());
  Printf.printf "kept: %d\n" (List.length !kept)

let () =
  match Sys.argv with
  | [| _; "requested" |] -> requested ()
  | [| _; "manual"; first; second |] -> manual first second
  | [| _; "external"; file |] -> outside file
  | [| _; "custom"; file |] -> custom file
  | [| _; "killed"; file |] -> killed file
  | [| _; "mistakes"; file |] -> mistakes file
  | [| _; "listening"; file |] -> listening file
  | [| _; "snapshot"; heapline; file |] -> snapshot heapline file
  | _ -> assert false
