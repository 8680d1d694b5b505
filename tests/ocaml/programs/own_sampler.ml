(* Uses Gc.Memprof when it is told to, by a character of input, and says what came of it:

   s   starts a sampler
   m   starts one right after a large value was read, whose samples wait for their callbacks
   x   stops it
   w   works, and says if that was sampled
   f   forks a process that does all that *)

let samples = ref 0
let buffer = Bytes.create 1
let large = Marshal.to_string (Array.init 100_000 (fun i -> Some i)) []

(* On the minor heap, where collections move it. *)
let tracker () =
  let count = ref samples in
  let alloc _ = incr !count; None in
  { Gc.Memprof.null_tracker with alloc_minor = alloc; alloc_major = alloc }

let start tracker =
  match Gc.Memprof.start ~sampling_rate:1e-2 ~callstack_size:10 tracker with
  | _ -> print_endline "started"
  | exception Failure message -> print_endline message

let start_after_reading () =
  let tracker = tracker () in
  let value : int option array = Marshal.from_string large 0 in
  start tracker;
  assert (Array.length (Sys.opaque_identity value) = 100_000)

let stop () =
  match Gc.Memprof.stop () with
  | () -> print_endline "stopped"
  | exception Failure message -> print_endline message

let work () =
  samples := 0;
  let list = List.init 100_000 (fun i -> string_of_int i) in
  assert (List.length (Sys.opaque_identity list) = 100_000);
  print_endline (if !samples > 1_000 then "sampled" else if !samples = 0 then "not sampled" else "hardly sampled")

let fork () =
  match Unix.fork () with
  | 0 ->
      start (tracker ());
      work ();
      stop ();
      work ();
      exit 0
  | pid -> assert (snd (Unix.waitpid [] pid) = Unix.WEXITED 0)

let static = { Gc.Memprof.null_tracker with alloc_minor = (fun _ -> incr samples; None) }

(* Nothing is allocated between the system call and what follows. *)
let rec serve () =
  if Unix.read Unix.stdin buffer 0 1 = 1 then (
    (match Bytes.get buffer 0 with
    | 's' -> start static
    | 'm' -> start_after_reading ()
    | 'x' -> stop ()
    | 'w' -> work ()
    | _ -> fork ());
    serve ())

let () =
  print_endline "ready";
  serve ()
